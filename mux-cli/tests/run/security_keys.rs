//! Security keys behind an agent that plays one: a real sshd verifies what it signs.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use base64ct::{Base64, Encoding};
use bytes::{BufMut, Bytes, BytesMut};
use mux_ssh::algorithms::KeyType;
use mux_ssh::keys::{PrivateKey, PublicKey};
use mux_ssh::wire::{Reader, Writer};

use crate::keys::denied;
use crate::rig::Rig;

const APPLICATION: &[u8] = b"ssh:";

/// A security key: what it is called, and the key inside.
struct Device {
    public: PublicKey,
    inside: PrivateKey,
}

impl Device {
    fn new(key_type: KeyType) -> Arc<Self> {
        let is_ed25519 = key_type == KeyType::SkEd25519;
        let inside = if is_ed25519 {
            KeyType::Ed25519
        } else {
            KeyType::EcdsaNistp256
        };
        let inside = PrivateKey::generate(inside).unwrap();
        let mut numbers = Reader::new(inside.public().blob());
        numbers.string().unwrap();
        let blob = written(|w| {
            w.string(key_type.name()).raw(numbers.rest()).string(APPLICATION);
        });
        Arc::new(Self {
            public: PublicKey::parse(&blob).unwrap(),
            inside,
        })
    }

    fn line(&self) -> String {
        format!(
            "{} {}\n",
            self.public.algorithm(),
            Base64::encode_string(self.public.blob())
        )
    }

    /// OpenSSH PROTOCOL.u2f, with the flag that somebody was there.
    fn sign(&self, data: &[u8]) -> Bytes {
        let added = [1, 0, 0, 0, 7];
        let signed = written(|w| {
            w.raw(digest(&SHA256, APPLICATION).as_ref())
                .raw(&added)
                .raw(digest(&SHA256, data).as_ref());
        });
        let algorithm = self.inside.public().key_type().signature_algorithms()[0];
        let signature = self.inside.sign(algorithm, &signed).unwrap();
        let mut fields = Reader::new(&signature);
        fields.string().unwrap();
        let value = fields.string().unwrap();
        written(|w| {
            w.string(self.public.algorithm()).string(value).raw(&added);
        })
    }
}

fn written(fill: impl FnOnce(&mut Writer<'_>)) -> Bytes {
    let mut out = BytesMut::new();
    fill(&mut Writer::new(&mut out));
    out.freeze()
}

/// An agent with this device in it, which takes so long to be touched. What it is asked, socket by socket.
fn agent(rig: &Rig, device: &Arc<Device>, touch: Duration) -> Arc<Mutex<Vec<Vec<&'static str>>>> {
    let listener = UnixListener::bind(rig.path("agent")).unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (device, seen) = (Arc::clone(device), Arc::clone(&asked));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (device, seen) = (Arc::clone(&device), Arc::clone(&seen));
            let place = {
                let mut seen = seen.lock().unwrap();
                seen.push(Vec::new());
                seen.len() - 1
            };
            thread::spawn(move || {
                serve(stream, &device, touch, |what| {
                    seen.lock().unwrap()[place].push(what)
                })
            });
        }
    });
    rig.configure(&format!("IdentityAgent {}", rig.text("agent")));
    asked
}

fn serve(mut stream: UnixStream, device: &Device, touch: Duration, seen: impl Fn(&'static str)) {
    let mut length = [0; 4];
    while stream.read_exact(&mut length).is_ok() {
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut frame).unwrap();
        let mut reader = Reader::new(&frame);
        let answer = match reader.byte().unwrap() {
            11 => {
                seen("list");
                written(|w| {
                    w.byte(12).uint32(1).string(device.public.blob()).string("token");
                })
            }
            27 => {
                assert_eq!(reader.string(), Ok(&b"session-bind@openssh.com"[..]));
                let host_key = PublicKey::parse(reader.string().unwrap()).unwrap();
                let (session, signature) = (reader.string().unwrap(), reader.string().unwrap());
                let algorithm = host_key.key_type().signature_algorithms()[0];
                host_key.verify(algorithm, session, signature).unwrap();
                assert_eq!(reader.boolean(), Ok(false), "not forwarded");
                seen("bind");
                written(|w| {
                    w.byte(6);
                })
            }
            number => {
                assert_eq!(number, 13);
                assert_eq!(reader.string(), Ok(device.public.blob()));
                let data = reader.string().unwrap();
                seen("sign");
                thread::sleep(touch);
                written(|w| {
                    w.byte(14).string(device.sign(data));
                })
            }
        };
        let mut out = BytesMut::new();
        out.put_u32(u32::try_from(answer.len()).unwrap());
        out.extend_from_slice(&answer);
        // The other side may be gone.
        let _ = stream.write_all(&out);
    }
}

#[test]
fn security_keys_log_in_through_the_agent_which_is_told_the_session_first() {
    for key_type in [KeyType::SkEd25519, KeyType::SkEcdsaNistp256] {
        let rig = crate::keys::keys_only();
        let device = Device::new(key_type);
        fs::write(rig.path("authorized_keys"), device.line()).unwrap();
        let asked = agent(&rig, &device, Duration::ZERO);
        fs::remove_file(rig.path("id")).unwrap();
        fs::remove_file(rig.path("id.pub")).unwrap();
        rig.check(
            &["-w", "web[1-2]", "--", "echo hello"],
            0,
            "web1: hello\nweb2: hello\n",
            "",
        );
        let asked = asked.lock().unwrap();
        assert_eq!(*asked, [&["list"][..], &["bind", "sign"], &["bind", "sign"]]);
    }
}

#[test]
fn a_key_that_has_to_be_touched_is_never_asked_before_the_server_wants_it() {
    let rig = crate::keys::keys_only();
    let device = Device::new(KeyType::SkEd25519);
    let asked = agent(&rig, &device, Duration::ZERO);
    let ran = rig.run(&["-o", "IdentitiesOnly=no", "-w", "web1", "--", "echo hello"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "web1: hello\n"), "{ran:?}");
    // Remembered or the only one, it is still asked about first: this server does not take it any more.
    fs::write(rig.path("authorized_keys"), device.line()).unwrap();
    rig.check(&["-w", "web1", "--", "echo hello"], 0, "web1: hello\n", "");
    let signed = |asked: &Mutex<Vec<Vec<&str>>>| {
        let asked = asked.lock().unwrap();
        asked.iter().flatten().filter(|what| **what == "sign").count()
    };
    assert_eq!(signed(&asked), 1);
    fs::write(rig.path("authorized_keys"), "").unwrap();
    let ran = rig.run(&["-w", "web1", "--", "echo hello"]);
    assert_eq!(ran.status, 4, "{ran:?}");
    assert_eq!(signed(&asked), 1);
}

#[test]
fn waiting_for_a_touch_is_nobodys_time() {
    let rig = crate::keys::keys_only();
    let device = Device::new(KeyType::SkEd25519);
    fs::write(rig.path("authorized_keys"), device.line()).unwrap();
    let _asked = agent(&rig, &device, Duration::from_secs(7));
    let args = ["--login-timeout", "5s", "-w", "web1", "--", "echo hello"];
    rig.check(&args, 0, "web1: hello\n", "");
}

#[test]
fn the_file_of_a_security_key_without_an_agent_says_what_to_do() {
    let rig = crate::keys::keys_only();
    let device = Device::new(KeyType::SkEd25519);
    fs::write(rig.path("id"), file_of(&device)).unwrap();
    let why = "security key, with which only an agent can sign; ssh-add it, or use --transport openssh";
    let warning = format!("mux: DIR/config line 5: identity file DIR/id not used: {why}\n");
    rig.check(
        &["-w", "web1", "--", "true"],
        4,
        "",
        &format!("{warning}{}", denied(&rig, &format!("DIR/id: {why}"))),
    );
    // With one that has it the file names the key of the agent.
    fs::write(rig.path("authorized_keys"), device.line()).unwrap();
    let _asked = agent(&rig, &device, Duration::ZERO);
    rig.configure(&format!(
        "IdentityAgent {}\nIdentitiesOnly yes",
        rig.text("agent")
    ));
    rig.check(&["-w", "web1", "--", "echo hello"], 0, "web1: hello\n", "");
}

/// As `ssh-keygen -t ed25519-sk` writes it (OpenSSH PROTOCOL.key): the private half is a handle.
fn file_of(device: &Device) -> String {
    let mut numbers = Reader::new(device.public.blob());
    let name = numbers.string().unwrap();
    let (point, application) = (numbers.string().unwrap(), numbers.string().unwrap());
    let private = written(|w| {
        w.uint32(7)
            .uint32(7)
            .string(name)
            .string(point)
            .string(application);
        w.byte(1).string([9; 64]).string("").string("comment");
    });
    let bytes = written(|w| {
        w.raw(b"openssh-key-v1\0")
            .string("none")
            .string("none")
            .string("")
            .uint32(1);
        w.string(device.public.blob()).string(&private);
    });
    let base64 = Base64::encode_string(&bytes);
    let lines: Vec<&str> = base64
        .as_bytes()
        .chunks(70)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    format!(
        "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n",
        lines.join("\n")
    )
}
