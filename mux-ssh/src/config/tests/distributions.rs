//! The files that distributions ship, as they lie in `/etc/ssh`.

use super::World;

const DEBIAN: &str = "Include /etc/ssh/ssh_config.d/*.conf\nHost *\n    SendEnv LANG LC_*\n    HashKnownHosts yes\n    \
    GSSAPIAuthentication yes\n";
const DEBIAN_13: &str = "Include /etc/ssh/ssh_config.d/*.conf\nHost *\n    SendEnv LANG LC_* COLORTERM NO_COLOR\n    \
    HashKnownHosts yes\n    GSSAPIAuthentication yes\n";
const RED_HAT: &str = "Include /etc/ssh/ssh_config.d/*.conf\n";
const RED_HAT_9: &str = "Match final all\n\tInclude /etc/crypto-policies/back-ends/openssh.config\n\t\
    GSSAPIAuthentication yes\n\tForwardX11Trusted yes\n";
const RED_HAT_8: &str = "Match all\n\tInclude /etc/crypto-policies/back-ends/openssh.config\n\tGSSAPIAuthentication yes\n\t\
    ForwardX11Trusted yes\n\tSendEnv LANG LC_CTYPE LC_NUMERIC LC_TIME LC_COLLATE LC_MONETARY LC_MESSAGES\n\t\
    SendEnv LC_PAPER LC_NAME LC_ADDRESS LC_TELEPHONE LC_MEASUREMENT\n\tSendEnv LC_IDENTIFICATION LC_ALL LANGUAGE\n\t\
    SendEnv XMODIFIERS\n";
const POLICY_9: &str = "Ciphers aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,aes256-ctr,\
    aes128-gcm@openssh.com,aes128-ctr
MACs hmac-sha2-256-etm@openssh.com,hmac-sha1-etm@openssh.com,umac-128-etm@openssh.com,hmac-sha2-512-etm@openssh.com,\
    hmac-sha2-256,hmac-sha1,umac-128@openssh.com,hmac-sha2-512
GSSAPIKexAlgorithms gss-curve25519-sha256-,gss-nistp256-sha256-,gss-group14-sha256-,gss-group16-sha512-
KexAlgorithms curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,ecdh-sha2-nistp384,\
    ecdh-sha2-nistp521,diffie-hellman-group-exchange-sha256,diffie-hellman-group14-sha256,\
    diffie-hellman-group16-sha512,diffie-hellman-group18-sha512
PubkeyAcceptedAlgorithms ecdsa-sha2-nistp256,ecdsa-sha2-nistp256-cert-v01@openssh.com,ssh-ed25519,\
    ssh-ed25519-cert-v01@openssh.com,rsa-sha2-256,rsa-sha2-256-cert-v01@openssh.com,rsa-sha2-512,\
    rsa-sha2-512-cert-v01@openssh.com
HostbasedAcceptedAlgorithms ecdsa-sha2-nistp256,ssh-ed25519,rsa-sha2-256,rsa-sha2-512
CASignatureAlgorithms ecdsa-sha2-nistp256,ssh-ed25519,rsa-sha2-256,rsa-sha2-512
RequiredRSASize 2048
";
const POLICY_8: &str = "Ciphers aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,aes256-ctr,aes256-cbc,\
    aes128-gcm@openssh.com,aes128-ctr,aes128-cbc
MACs hmac-sha2-256-etm@openssh.com,hmac-sha1-etm@openssh.com,umac-128-etm@openssh.com,hmac-sha2-512-etm@openssh.com,\
    hmac-sha2-256,hmac-sha1,umac-128@openssh.com,hmac-sha2-512
GSSAPIKexAlgorithms gss-curve25519-sha256-,gss-nistp256-sha256-,gss-group14-sha256-,gss-group16-sha512-,\
    gss-gex-sha1-,gss-group14-sha1-
KexAlgorithms curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,ecdh-sha2-nistp384,\
    ecdh-sha2-nistp521,diffie-hellman-group-exchange-sha256,diffie-hellman-group14-sha256,\
    diffie-hellman-group16-sha512,diffie-hellman-group18-sha512,diffie-hellman-group-exchange-sha1,\
    diffie-hellman-group14-sha1
PubkeyAcceptedKeyTypes ecdsa-sha2-nistp256,ecdsa-sha2-nistp256-cert-v01@openssh.com,ecdsa-sha2-nistp384,\
    ecdsa-sha2-nistp384-cert-v01@openssh.com,ecdsa-sha2-nistp521,ecdsa-sha2-nistp521-cert-v01@openssh.com,\
    ssh-ed25519,ssh-ed25519-cert-v01@openssh.com,rsa-sha2-256,rsa-sha2-256-cert-v01@openssh.com,rsa-sha2-512,\
    rsa-sha2-512-cert-v01@openssh.com,ssh-rsa,ssh-rsa-cert-v01@openssh.com
CASignatureAlgorithms ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521,ssh-ed25519,rsa-sha2-256,\
    rsa-sha2-512,ssh-rsa
";

fn notes(world: &World) -> Vec<&'static str> {
    world
        .resolve("web1")
        .unwrap()
        .notes
        .iter()
        .map(|note| note.keyword)
        .collect()
}

#[test]
fn debian_and_ubuntu_work_and_hash_names() {
    for file in [DEBIAN, DEBIAN_13] {
        let world = World::default().with("/etc/ssh/ssh_config", file);
        let config = world.resolve("web1").unwrap();
        assert!(config.hash_known_hosts);
        assert_eq!(
            config.algorithms().unwrap(),
            crate::algorithms::Algorithms::default()
        );
        assert_eq!(notes(&world), [""; 0]);
        assert!(config.login.gssapi_authentication.value);
        assert_eq!(config.session.send_env.first().unwrap().value, "LANG");
    }
}

/// What the crypto policy leaves of the ciphers, the key exchanges and what keys are shown and sign as.
fn check_policy(world: &World, ciphers: &[&str], kex: &[&str], signatures: usize) {
    let config = world.resolve("web1").unwrap();
    assert_eq!(config.unknown_algorithms(), []);
    let algorithms = config.algorithms().unwrap();
    assert_eq!(
        algorithms
            .ciphers
            .iter()
            .map(|cipher| cipher.name())
            .collect::<Vec<_>>(),
        ciphers
    );
    assert_eq!(
        algorithms.kex.iter().map(|kex| kex.name()).collect::<Vec<_>>(),
        kex
    );
    assert_eq!(config.signature_algorithms().unwrap().len(), signatures);
}

#[test]
fn red_hat_and_fedora_work_and_their_crypto_policy_is_honoured() {
    let policy = "/etc/crypto-policies/back-ends/openssh.config";
    let ciphers = [
        "aes256-gcm@openssh.com",
        "chacha20-poly1305@openssh.com",
        "aes256-ctr",
        "aes128-gcm@openssh.com",
        "aes128-ctr",
    ];
    let kex = [
        "curve25519-sha256",
        "curve25519-sha256@libssh.org",
        "ecdh-sha2-nistp256",
        "ecdh-sha2-nistp384",
        "ecdh-sha2-nistp521",
    ];
    let el9 = World::default()
        .with("/etc/ssh/ssh_config", RED_HAT)
        .with("/etc/ssh/ssh_config.d/50-redhat.conf", RED_HAT_9)
        .with(policy, POLICY_9);
    check_policy(&el9, &ciphers, &kex, 8);
    let config = el9.resolve("web1").unwrap();
    assert_eq!(config.required_rsa_size.value, 2048);
    assert_eq!(
        config.required_rsa_size.origin.to_string(),
        format!("{policy} line 8")
    );
    assert!(config.login.gssapi_authentication.value);
    assert_eq!(
        config.host_keys.ca_signature_algorithms.unwrap().value,
        "ecdsa-sha2-nistp256,ssh-ed25519,rsa-sha2-256,rsa-sha2-512"
    );
    assert_eq!(notes(&el9), ["GSSAPIKexAlgorithms"]);
    let el8 = World::default()
        .with("/etc/ssh/ssh_config", RED_HAT)
        .with("/etc/ssh/ssh_config.d/05-redhat.conf", RED_HAT_8)
        .with(policy, POLICY_8);
    check_policy(&el8, &ciphers, &kex, 12);
}

#[test]
fn a_users_choice_comes_before_the_policy() {
    let world = World::user("Host web1\n Ciphers chacha20-poly1305@openssh.com\n")
        .with("/etc/ssh/ssh_config", RED_HAT)
        .with("/etc/ssh/ssh_config.d/50-redhat.conf", RED_HAT_9)
        .with("/etc/crypto-policies/back-ends/openssh.config", POLICY_9);
    let algorithms = world.resolve("web1").unwrap().algorithms().unwrap();
    assert_eq!(algorithms.ciphers, [crate::algorithms::Cipher::ChaCha20Poly1305]);
}
