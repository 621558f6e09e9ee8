//! Seeded nonsense: no panic, no endless loop, and the same answer twice.

use super::World;

/// xorshift64*: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let index = usize::try_from(self.next() >> 8).unwrap() % from.len();
        from.get(index).unwrap()
    }
}

#[test]
fn nonsense_neither_panics_nor_depends_on_the_order_of_questions() {
    let words = [
        "Host",
        "Match",
        "Include",
        "all",
        "final",
        "*",
        "a*",
        "!a",
        "b",
        "User",
        "Port",
        "22",
        "x",
        "HostName",
        "%h",
        "%%",
        "%",
        "IdentityFile",
        "~",
        "~/",
        "~x",
        "${NAME}",
        "${",
        "$",
        "\"",
        "'",
        "\\",
        "=",
        "#",
        "\n",
        "\n",
        "\n",
        " ",
        "\t",
        "\r",
        "yes",
        "none",
        "ProxyJump",
        "IgnoreUnknown",
        "Foo",
        "other",
        "config",
        "ö",
        "\u{0}",
        "ConnectTimeout",
        "1h",
        "StrictHostKeyChecking",
        "accept-new",
        "Ciphers",
        "+a,b",
        "IdentityAgent",
    ];
    for seed in 1..3000 {
        let mut random = Random(seed);
        let mut text = || -> String {
            let count = random.next() % 40;
            (0..count).map(|_| format!("{} ", random.pick(&words))).collect()
        };
        let world = World::user(&text())
            .with("/home/me/.ssh/other", text())
            .with("/etc/ssh/ssh_config", text());
        let mut resolver = world.resolver();
        for host in ["a", "b", "a"] {
            let facts = crate::config::Facts {
                host: host.to_owned(),
                ..Default::default()
            };
            let alone = world.resolve(host);
            assert_eq!(world.resolve_with(&mut resolver, &facts), alone, "seed {seed}");
        }
    }
}
