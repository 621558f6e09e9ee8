//! Configurations like those that people have, each with what it means for some hosts, in the words of `ssh -G`.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::io::ErrorKind;

use mux_ssh::config::{Facts, Local, Need, Purpose, Resolver, Step};

/// A machine of somebody's: the user's file, and what else there is.
#[derive(Default)]
struct Machine {
    config: &'static str,
    files: &'static [(&'static str, &'static str)],
    /// Commands that succeed.
    succeeding: &'static [&'static str],
    /// Names that have an address, and where they lead.
    names: &'static [(&'static str, &'static str)],
    addresses: &'static [&'static str],
    version: &'static str,
    command: &'static str,
}

impl Machine {
    fn answer(&self, resolver: &mut Resolver, need: Need) {
        match need {
            Need::File(path) if path == "/home/me/.ssh/config" => {
                resolver.supply_file(path, Ok(self.config.as_bytes()));
            }
            Need::File(path) => {
                let content = self.files.iter().find(|(name, _)| *name == path);
                let content = content.map(|(_, content)| content.as_bytes());
                resolver.supply_file(path, content.ok_or(ErrorKind::NotFound));
            }
            Need::Glob(pattern) => {
                let (front, back) = pattern.split_once('*').unwrap_or((&pattern, ""));
                let names = self.files.iter().map(|(name, _)| *name);
                let found = names.filter(|name| name.starts_with(front) && name.ends_with(back));
                let found = found.map(str::to_owned).collect();
                resolver.supply_glob(pattern, found);
            }
            Need::Exec(command) => {
                let succeeded = self.succeeding.contains(&command.as_str());
                resolver.supply_exec(command, Ok(succeeded));
            }
            Need::Lookup(name) => {
                let found = self.names.iter().find(|(known, _)| *known == name);
                resolver.supply_lookup(name, found.map(|(_, target)| (*target).to_owned()));
            }
            Need::Addresses => {
                let addresses = self.addresses.iter().filter_map(|address| address.parse().ok());
                resolver.supply_addresses(addresses.collect());
            }
            Need::Version => resolver.supply_version(Some(self.version.to_owned())),
            Need::Home(user) => resolver.supply_home(user, None),
        }
    }

    /// The values that the words before the first blank of each expectation name, for `[user@]host[:port]`.
    fn check(&self, target: &str, expected: &[&str]) {
        let (user, host) = match target.rsplit_once('@') {
            Some((user, host)) => (Some(user.to_owned()), host),
            None => (None, target),
        };
        let facts = Facts {
            host: host.to_owned(),
            user,
            port: None,
            purpose: Purpose::Command(self.command.into()),
        };
        let mut resolver = Resolver::new(Local {
            home: "/home/me".to_owned(),
            user: "me".to_owned(),
            uid: 1000,
            host: "laptop.example.org".to_owned(),
            variables: [("SSH_AUTH_SOCK".to_owned(), "/run/agent".to_owned())].into(),
            ..Local::default()
        });
        let lines = loop {
            match resolver.effective(&facts) {
                Ok(Step::Done(lines)) => break lines,
                Ok(Step::Need(need)) => self.answer(&mut resolver, need),
                Err(error) => panic!("{target}: {error} in\n{}", self.config),
            }
        };
        let wanted = |keyword: &str| {
            expected
                .iter()
                .any(|line| line.split(' ').next() == Some(keyword))
        };
        let found: Vec<String> = lines
            .iter()
            .filter(|line| wanted(line.keyword))
            .map(ToString::to_string)
            .collect();
        // A keyword with nothing behind it is not there at all.
        let expected: Vec<&str> = expected
            .iter()
            .copied()
            .filter(|line| line.contains(' '))
            .collect();
        let mut sorted = (found, expected);
        sorted.0.sort();
        sorted.1.sort_unstable();
        assert_eq!(sorted.0, sorted.1, "{target} in\n{}", self.config);
    }
}

/// Each target with what it comes to.
fn check(config: &'static str, targets: &[(&str, &[&str])]) {
    let machine = Machine {
        config,
        ..Machine::default()
    };
    for (target, expected) in targets {
        machine.check(target, expected);
    }
}

#[test]
fn a_corporate_bastion_for_everything_inside_and_for_nothing_else() {
    check(
        "Host bastion\n  HostName bastion.corp.example\n  User alice\nHost *.corp.example !bastion.corp.example\n  \
         ProxyJump bastion\nHost *\n  ServerAliveInterval 60\n",
        &[
            (
                "web1.corp.example",
                &["proxyjump bastion", "serveraliveinterval 60"],
            ),
            ("bastion.corp.example", &["proxyjump", "serveraliveinterval 60"]),
            (
                "bastion",
                &["hostname bastion.corp.example", "user alice", "proxyjump"],
            ),
            ("github.com", &["proxyjump", "user me"]),
        ],
    );
}

#[test]
fn two_bastions_in_a_row_and_one_for_each_site() {
    check(
        "Host *.fra\n  ProxyJump gate.fra.example:2222\nHost *.sin\n  ProxyJump ops@gate.fra.example,gate.sin.example\n",
        &[
            ("db.fra", &["proxyjump gate.fra.example:2222"]),
            ("db.sin", &["proxyjump ops@gate.fra.example,gate.sin.example"]),
        ],
    );
}

#[test]
fn a_bastion_from_the_time_before_proxy_jump() {
    check(
        "Host 10.*\n  ProxyCommand ssh -q -W %h:%p gate\nHost *.old\n  ProxyCommand ssh gate nc %h %p 2> /dev/null\n",
        &[
            ("10.1.2.3", &["proxycommand ssh -q -W %h:%p gate"]),
            ("a.old", &["proxycommand ssh gate nc %h %p 2> /dev/null"]),
        ],
    );
}

#[test]
fn session_manager_of_a_cloud() {
    check(
        "host i-* mi-*\n    ProxyCommand sh -c \"aws ssm start-session --target %h --document-name AWS-StartSSHSession \
         --parameters 'portNumber=%p'\"\n    User ec2-user\n",
        &[(
            "i-0123456789abcdef0",
            &[
                "user ec2-user",
                "proxycommand sh -c \"aws ssm start-session --target %h --document-name AWS-StartSSHSession \
                 --parameters 'portNumber=%p'\"",
            ],
        )],
    );
}

#[test]
fn identity_aware_proxy_of_a_cloud() {
    check(
        "Host vm1.us-east1-b.project\n    HostName compute.123456\n    IdentityFile /home/me/.ssh/google_compute_engine\n    \
         CheckHostIP=no\n    HashKnownHosts=no\n    HostKeyAlias=compute.123456\n    IdentitiesOnly=yes\n    \
         StrictHostKeyChecking=yes\n    UserKnownHostsFile=/home/me/.ssh/google_compute_known_hosts\n    \
         ProxyCommand gcloud compute start-iap-tunnel vm1 %p --listen-on-stdin --zone us-east1-b\n    ProxyUseFdpass=no\n",
        &[(
            "vm1.us-east1-b.project",
            &[
                "hostname compute.123456",
                "hostkeyalias compute.123456",
                "identitiesonly yes",
                "stricthostkeychecking true",
                "identityfile /home/me/.ssh/google_compute_engine",
                "userknownhostsfile /home/me/.ssh/google_compute_known_hosts",
                "proxycommand gcloud compute start-iap-tunnel vm1 %p --listen-on-stdin --zone us-east1-b",
                "proxyusefdpass no",
            ],
        )],
    );
}

#[test]
fn code_hosts_under_two_accounts() {
    check(
        "Host github-work\n  HostName github.com\n  User git\n  IdentityFile ~/.ssh/work\n  IdentitiesOnly yes\n\
         Host github.com\n  User git\n  IdentityFile ~/.ssh/home\n",
        &[
            (
                "github-work",
                &[
                    "hostname github.com",
                    "user git",
                    "identityfile ~/.ssh/work",
                    "identitiesonly yes",
                ],
            ),
            (
                "github.com",
                &[
                    "hostname github.com",
                    "user git",
                    "identityfile ~/.ssh/home",
                    "identitiesonly no",
                ],
            ),
        ],
    );
}

#[test]
fn a_code_host_over_the_port_of_https() {
    check(
        "Host github.com\n Hostname ssh.github.com\n Port 443\n User git\n",
        &[("github.com", &["hostname ssh.github.com", "port 443", "user git"])],
    );
}

#[test]
fn a_mac_with_its_keychain() {
    check(
        "Host *\n  IgnoreUnknown UseKeychain,AddKeysToAgent\n  UseKeychain yes\n  AddKeysToAgent yes\n  IdentityFile \
         ~/.ssh/id_ed25519\n",
        &[("x", &["addkeystoagent true", "identityfile ~/.ssh/id_ed25519"])],
    );
}

#[test]
fn a_password_manager_as_the_agent() {
    check(
        "Host *\n\tIdentityAgent \"~/Library/Group Containers/2BUA8C4S2C.com.1password/t/agent.sock\"\n",
        &[(
            "x",
            &["identityagent /home/me/Library/Group Containers/2BUA8C4S2C.com.1password/t/agent.sock"],
        )],
    );
}

#[test]
fn a_jump_only_away_from_the_office() {
    let config =
        "Match host *.corp exec \"! nc -z -w1 %h 22\"\n  ProxyJump vpn\nMatch host *.corp\n  User alice\n";
    let inside = Machine {
        config,
        ..Machine::default()
    };
    inside.check("web.corp", &["user alice", "proxyjump"]);
    let outside = Machine {
        succeeding: &["! nc -z -w1 web.corp 22"],
        ..inside
    };
    outside.check("web.corp", &["user alice", "proxyjump vpn"]);
    outside.check("elsewhere", &["user me", "proxyjump"]);
}

#[test]
fn a_jump_by_the_network_that_one_is_in() {
    let home = Machine {
        config: "Match localnetwork 10.0.0.0/8,fd00::/8\n  Tag office\nMatch tagged office host db*\n  HostName \
                 %h.internal\nMatch !tagged office host db*\n  ProxyJump gate\n",
        addresses: &["127.0.0.1", "192.168.1.5"],
        ..Machine::default()
    };
    home.check("db1", &["hostname db1", "proxyjump gate", "tag"]);
    let office = Machine {
        addresses: &["127.0.0.1", "10.4.3.2"],
        ..home
    };
    office.check("db1", &["hostname db1.internal", "proxyjump", "tag office"]);
}

#[test]
fn short_names_in_two_domains() {
    let machine = Machine {
        config: "CanonicalizeHostname yes\nCanonicalDomains prod.example dev.example\nCanonicalizeMaxDots 0\n\
                 CanonicalizePermittedCNAMEs *.prod.example:*.cdn.example\nHost *.prod.example\n User deploy\n\
                 Host *.dev.example\n User dev\nMatch canonical host *.cdn.example\n User cdn\n",
        names: &[
            ("web.prod.example.", "web.prod.example"),
            ("lab.dev.example.", "lab.dev.example"),
            ("static.prod.example.", "e1.cdn.example"),
        ],
        ..Machine::default()
    };
    machine.check("web", &["hostname web.prod.example", "user deploy"]);
    machine.check("lab", &["hostname lab.dev.example", "user dev"]);
    machine.check("static", &["hostname e1.cdn.example", "user cdn"]);
    machine.check("nowhere", &["hostname nowhere", "user me"]);
    machine.check("web.prod.example", &["hostname web.prod.example", "user deploy"]);
}

#[test]
fn certificates_by_wildcard() {
    check(
        "Host *.prod\n  CertificateFile ~/.ssh/%r-cert.pub\n  IdentityFile ~/.ssh/prod\n  User deploy\n\
         Host *\n  CertificateFile ~/.ssh/id-cert.pub\n",
        &[
            (
                "a.prod",
                &[
                    "certificatefile ~/.ssh/%r-cert.pub",
                    "certificatefile ~/.ssh/id-cert.pub",
                    "identityfile ~/.ssh/prod",
                ],
            ),
            ("b", &["certificatefile ~/.ssh/id-cert.pub"]),
        ],
    );
}

#[test]
fn certificates_from_a_proxy_of_a_vendor() {
    check(
        "Host *.cluster cluster\n    UserKnownHostsFile \"/home/me/.tsh/known_hosts\"\n    IdentityFile \
         \"/home/me/.tsh/keys/proxy/me\"\n    CertificateFile \"/home/me/.tsh/keys/proxy/me-ssh/cluster-cert.pub\"\n\
         Host *.cluster !cluster\n    Port 3022\n    ProxyCommand \"/usr/bin/tsh\" proxy ssh --proxy=proxy:443 %r@%h:%p\n",
        &[(
            "node1.cluster",
            &[
                "port 3022",
                "userknownhostsfile /home/me/.tsh/known_hosts",
                "certificatefile /home/me/.tsh/keys/proxy/me-ssh/cluster-cert.pub",
                "proxycommand \"/usr/bin/tsh\" proxy ssh --proxy=proxy:443 %r@%h:%p",
            ],
        )],
    );
}

#[test]
fn a_virtual_machine_of_a_developer() {
    check(
        "Host default\n  HostName 127.0.0.1\n  User vagrant\n  Port 2222\n  UserKnownHostsFile /dev/null\n  \
         StrictHostKeyChecking no\n  PasswordAuthentication no\n  IdentityFile /vm/private_key\n  IdentitiesOnly yes\n  \
         LogLevel FATAL\n",
        &[(
            "default",
            &[
                "hostname 127.0.0.1",
                "user vagrant",
                "port 2222",
                "userknownhostsfile /dev/null",
                "stricthostkeychecking false",
                "passwordauthentication no",
                "loglevel FATAL",
                "updatehostkeys false",
            ],
        )],
    );
}

#[test]
fn shared_connections_and_keepalives() {
    check(
        "Host *\n  ControlMaster auto\n  ControlPath ~/.ssh/cm/%r@%h:%p\n  ControlPersist 10m\n  ServerAliveInterval 30\n  \
         ServerAliveCountMax 4\n  TCPKeepAlive no\n  Compression yes\n",
        &[(
            "web1",
            &[
                "controlpath /home/me/.ssh/cm/me@web1:22",
                "serveraliveinterval 30",
                "serveralivecountmax 4",
                "tcpkeepalive no",
                "compression yes",
            ],
        )],
    );
}

#[test]
fn a_directory_of_files_by_customer() {
    let machine = Machine {
        config: "Include config.d/*.conf\n\nHost *\n  User me\n",
        files: &[
            (
                "/home/me/.ssh/config.d/10-acme.conf",
                "Host *.acme\n  User acme\n  Include keys/acme\n",
            ),
            (
                "/home/me/.ssh/config.d/20-zeta.conf",
                "Host *.zeta\n  User zeta\n  Port 2200\n",
            ),
            ("/home/me/.ssh/config.d/notes.txt", "this is no configuration\n"),
            ("/home/me/.ssh/keys/acme", "IdentityFile ~/.ssh/acme\n"),
        ],
        ..Machine::default()
    };
    machine.check("a.acme", &["user acme", "port 22", "identityfile ~/.ssh/acme"]);
    machine.check("a.zeta", &["user zeta", "port 2200"]);
    machine.check("other", &["user me", "port 22"]);
}

#[test]
fn containers_that_bring_their_own_file() {
    let machine = Machine {
        config: "Include ~/.orbstack/ssh/config\nInclude ~/.colima/ssh_config\nHost *\n  ForwardAgent no\n",
        files: &[(
            "/home/me/.colima/ssh_config",
            "Host colima\n  IdentityFile \"/home/me/.colima/_lima/_config/user\"\n  Hostname 127.0.0.1\n  Port 50022\n",
        )],
        ..Machine::default()
    };
    machine.check("colima", &["hostname 127.0.0.1", "port 50022", "forwardagent no"]);
}

#[test]
fn an_agent_for_one_host_only() {
    check(
        "Host build\n  ForwardAgent yes\nHost ci\n  ForwardAgent $SSH_AUTH_SOCK\nHost *\n  ForwardAgent no\n",
        &[
            ("build", &["forwardagent yes"]),
            ("ci", &["forwardagent $SSH_AUTH_SOCK"]),
            ("web1", &["forwardagent no"]),
        ],
    );
}

#[test]
fn old_gear_with_old_algorithms() {
    check(
        "Host switch*\n  KexAlgorithms +diffie-hellman-group14-sha1\n  HostKeyAlgorithms +ssh-rsa\n  \
         PubkeyAcceptedAlgorithms +ssh-rsa\n  Ciphers +aes128-cbc\n  User admin\n",
        &[("switch1", &["user admin"])],
    );
}

#[test]
fn only_algorithms_of_a_policy() {
    check(
        "Host *\n  Ciphers aes256-gcm@openssh.com,aes256-ctr\n  MACs hmac-sha2-512-etm@openssh.com\n  KexAlgorithms \
         curve25519-sha256\n  HostKeyAlgorithms ssh-ed25519\n  PubkeyAcceptedAlgorithms ssh-ed25519\n",
        &[(
            "x",
            &[
                "ciphers aes256-gcm@openssh.com,aes256-ctr",
                "macs hmac-sha2-512-etm@openssh.com",
                "kexalgorithms curve25519-sha256",
                "hostkeyalgorithms ssh-ed25519",
                "pubkeyacceptedalgorithms ssh-ed25519",
            ],
        )],
    );
}

#[test]
fn a_user_for_each_kind_of_host() {
    check(
        "Host *.ubuntu\n User ubuntu\nHost *.centos *.rocky\n User rocky\nHost !*.ubuntu *\n User admin\n",
        &[
            ("a.ubuntu", &["user ubuntu"]),
            ("a.rocky", &["user rocky"]),
            ("a", &["user admin"]),
            ("root@a.rocky", &["user root"]),
        ],
    );
}

#[test]
fn settings_that_depend_on_as_whom_one_logs_in() {
    check(
        "Match user root\n  IdentityFile ~/.ssh/root\nMatch user git,gitlab\n  RequestTTY no\n  IdentityFile ~/.ssh/git\n\
         Match localuser me !user root\n  SendEnv LANG\n",
        &[
            ("root@a", &["identityfile ~/.ssh/root", "sendenv"]),
            (
                "git@a",
                &["identityfile ~/.ssh/git", "requesttty false", "sendenv LANG"],
            ),
        ],
    );
}

#[test]
fn what_was_typed_and_what_it_leads_to() {
    check(
        "Host db\n  HostName db-7.internal\nMatch originalhost db\n  Port 5022\nMatch host db\n  User wrong\n\
         Match host *.internal\n  User dba\n",
        &[("db", &["hostname db-7.internal", "port 5022", "user dba"])],
    );
}

#[test]
fn aliases_that_share_a_key() {
    check(
        "Host node1 node2\n  HostKeyAlias Cluster\n  HostName vip.example\n  UserKnownHostsFile ~/.ssh/known_%k\n",
        &[(
            "node1",
            &[
                "hostkeyalias cluster",
                "hostname vip.example",
                "userknownhostsfile /home/me/.ssh/known_cluster",
            ],
        )],
    );
}

#[test]
fn no_host_name_for_wildcards_but_a_suffix() {
    check(
        "Host web? db?\n  HostName %h.prod.example.com\n",
        &[
            ("web1", &["hostname web1.prod.example.com"]),
            ("web10", &["hostname web10"]),
        ],
    );
}

#[test]
fn hidden_services_and_other_odd_networks() {
    check(
        "Host *.onion\n  ProxyCommand nc -X 5 -x 127.0.0.1:9050 %h %p\nHost *.i2p\n  ProxyCommand socat - \
         SOCKS4A:127.0.0.1:%h:%p,socksport=4447\n",
        &[
            ("abc.onion", &["proxycommand nc -X 5 -x 127.0.0.1:9050 %h %p"]),
            (
                "abc.i2p",
                &["proxycommand socat - SOCKS4A:127.0.0.1:%h:%p,socksport=4447"],
            ),
        ],
    );
}

#[test]
fn a_command_that_is_run_and_one_that_is_given() {
    let config = "Host term\n  RemoteCommand tmux attach || tmux\n  RequestTTY force\nMatch sessiontype exec\n  LogLevel \
                  ERROR\nMatch command \"rsync *\"\n  Compression no\n  Port 2222\n";
    let run = Machine {
        config,
        command: "rsync --server .",
        ..Machine::default()
    };
    run.check(
        "term",
        &[
            "loglevel ERROR",
            "port 2222",
            "requesttty force",
            "remotecommand tmux attach || tmux",
        ],
    );
    let shell = Machine { command: "", ..run };
    shell.check("term", &["loglevel INFO", "port 22"]);
}

#[test]
fn lines_for_newer_versions_only() {
    let config = "Match version OpenSSH_10.*\n  Port 10\nMatch version OpenSSH_9.*,OpenSSH_8.*\n  Port 9\n";
    let new = Machine {
        config,
        version: "OpenSSH_10.0p2",
        ..Machine::default()
    };
    new.check("x", &["port 10"]);
    Machine {
        version: "OpenSSH_9.6p1",
        ..new
    }
    .check("x", &["port 9"]);
}

#[test]
fn variables_by_host_and_for_all() {
    check(
        "Host web*\n  SetEnv ROLE=web NODE=%h\nHost *\n  SetEnv ROLE=other\n  SendEnv LANG LC_* GIT_*\n",
        &[
            (
                "web1",
                &[
                    "setenv ROLE=web",
                    "setenv NODE=web1",
                    "sendenv LANG",
                    "sendenv LC_*",
                    "sendenv GIT_*",
                ],
            ),
            ("db", &["setenv ROLE=other"]),
        ],
    );
}

#[test]
fn nothing_is_sent_that_the_system_would_send() {
    let machine = Machine {
        config: "Host *\n  SendEnv -LC_* -LANG\n",
        files: &[(
            "/etc/ssh/ssh_config",
            "Host *\n    SendEnv LANG LC_*\n    HashKnownHosts yes\n",
        )],
        ..Machine::default()
    };
    // What is taken away before it was added comes back: so it is in OpenSSH.
    machine.check("x", &["sendenv LANG", "sendenv LC_*", "hashknownhosts yes"]);
}

#[test]
fn many_keys_in_order_and_none() {
    check(
        "Host a\n  IdentityFile ~/.ssh/one\n  IdentityFile ~/.ssh/two\nHost b\n  IdentityFile none\n  IdentitiesOnly yes\n\
         Host a b\n  IdentityFile ~/.ssh/three\n",
        &[
            (
                "a",
                &[
                    "identityfile ~/.ssh/one",
                    "identityfile ~/.ssh/two",
                    "identityfile ~/.ssh/three",
                ],
            ),
            (
                "b",
                &[
                    "identityfile none",
                    "identityfile ~/.ssh/three",
                    "identitiesonly yes",
                ],
            ),
        ],
    );
}

#[test]
fn a_strict_host_among_lax_ones() {
    check(
        "Host lab-*\n  StrictHostKeyChecking off\n  UserKnownHostsFile /dev/null\nHost prod-*\n  StrictHostKeyChecking \
         yes\n  VerifyHostKeyDNS yes\nHost *\n  StrictHostKeyChecking accept-new\n  HashKnownHosts yes\n",
        &[
            (
                "lab-1",
                &[
                    "stricthostkeychecking false",
                    "userknownhostsfile /dev/null",
                    "hashknownhosts yes",
                ],
            ),
            (
                "prod-1",
                &[
                    "stricthostkeychecking true",
                    "verifyhostkeydns true",
                    "updatehostkeys false",
                ],
            ),
            ("x", &["stricthostkeychecking accept-new", "updatehostkeys true"]),
        ],
    );
}

#[test]
fn ports_and_users_in_the_words_of_windows() {
    check(
        "Host win\r\n  HostName win.example\r\n  User DOMAIN\\\\joe\r\n  Port 2222\r\n\r\n# end\r\n",
        &[("win", &["hostname win.example", "user DOMAIN\\joe", "port 2222"])],
    );
}

#[test]
fn an_editor_that_writes_no_indentation_and_equal_signs() {
    check(
        "Host=a\nHostName=1.2.3.4\nUser = joe\nPort= 22\n\"IdentityFile\" \"/k/with blank\"\n",
        &[(
            "a",
            &[
                "hostname 1.2.3.4",
                "user joe",
                "port 22",
                "identityfile /k/with blank",
            ],
        )],
    );
}

#[test]
fn addresses_and_ranges_of_them() {
    check(
        "Host 192.168.*.*\n  User lan\nHost 10.0.?.1\n  User gw\nHost fe80::*\n  User link\nHost *:*\n  Port 66\n",
        &[
            ("192.168.1.5", &["user lan"]),
            ("10.0.7.1", &["user gw"]),
            ("fe80::1%eth0", &["user link", "port 66", "hostname fe80::1%eth0"]),
            ("2001:db8::1", &["user me", "port 66"]),
        ],
    );
}

#[test]
fn forwardings_of_a_developer_change_nothing_of_the_way() {
    check(
        "Host dev\n  LocalForward 8080 localhost:80\n  LocalForward /tmp/sock localhost:5432\n  RemoteForward 9000 \
         localhost:9000\n  DynamicForward 1080\n  ExitOnForwardFailure yes\n  ForwardX11 yes\n  ForwardX11Trusted yes\n  \
         PermitLocalCommand yes\n  LocalCommand echo connected to %n\n  Tunnel no\n  EscapeChar none\n  IPQoS af21 cs1\n",
        &[(
            "dev",
            &[
                "hostname dev",
                "exitonforwardfailure yes",
                "localcommand echo connected to %n",
            ],
        )],
    );
}

#[test]
fn a_final_word_of_the_system_after_the_users_own() {
    let machine = Machine {
        config: "Host a\n  HostName real.example\n  Ciphers aes128-ctr\n",
        files: &[
            ("/etc/ssh/ssh_config", "Include /etc/ssh/ssh_config.d/*.conf\n"),
            (
                "/etc/ssh/ssh_config.d/50-redhat.conf",
                "Match final all\n\tInclude /etc/crypto-policies/back-ends/openssh.config\n\tGSSAPIAuthentication yes\n",
            ),
            (
                "/etc/crypto-policies/back-ends/openssh.config",
                "Ciphers aes256-gcm@openssh.com\nMACs hmac-sha2-512\nRequiredRSASize 2048\n",
            ),
        ],
        ..Machine::default()
    };
    let expected: &[&str] = &[
        "ciphers aes128-ctr",
        "macs hmac-sha2-512",
        "requiredrsasize 2048",
        "gssapiauthentication yes",
        "hostname real.example",
    ];
    machine.check("a", expected);
}

#[test]
fn debian_and_ubuntu_as_they_come() {
    for send in ["SendEnv LANG LC_*", "SendEnv LANG LC_* COLORTERM NO_COLOR"] {
        let system: &'static str = match send {
            "SendEnv LANG LC_*" => {
                "Include /etc/ssh/ssh_config.d/*.conf\nHost *\n    SendEnv LANG LC_*\n    HashKnownHosts yes\n    \
                 GSSAPIAuthentication yes\n"
            }
            _ => {
                "Include /etc/ssh/ssh_config.d/*.conf\nHost *\n    SendEnv LANG LC_* COLORTERM NO_COLOR\n    \
                 HashKnownHosts yes\n    GSSAPIAuthentication yes\n"
            }
        };
        let files: &'static [(&'static str, &'static str)] =
            Box::leak(Box::new([("/etc/ssh/ssh_config", system)]));
        let machine = Machine {
            files,
            ..Machine::default()
        };
        machine.check(
            "x",
            &["hashknownhosts yes", "gssapiauthentication yes", "proxyjump"],
        );
    }
}

#[test]
fn red_hat_8_and_9_as_they_come() {
    let machine = Machine {
        files: &[
            ("/etc/ssh/ssh_config", "Include /etc/ssh/ssh_config.d/*.conf\n"),
            (
                "/etc/ssh/ssh_config.d/05-redhat.conf",
                "Match all\n\tInclude /etc/crypto-policies/back-ends/openssh.config\n\tGSSAPIAuthentication yes\n\t\
                 ForwardX11Trusted yes\n\tSendEnv LANG LC_CTYPE\n\tSendEnv XMODIFIERS\n",
            ),
            (
                "/etc/crypto-policies/back-ends/openssh.config",
                "Ciphers aes256-gcm@openssh.com,aes256-ctr\nGSSAPIKexAlgorithms gss-curve25519-sha256-\n\
                 PubkeyAcceptedKeyTypes ssh-ed25519,rsa-sha2-512\nCASignatureAlgorithms ssh-ed25519\n",
            ),
        ],
        ..Machine::default()
    };
    machine.check(
        "x",
        &[
            "ciphers aes256-gcm@openssh.com,aes256-ctr",
            "pubkeyacceptedalgorithms ssh-ed25519,rsa-sha2-512",
            "casignaturealgorithms ssh-ed25519",
            "sendenv LANG",
            "sendenv LC_CTYPE",
            "sendenv XMODIFIERS",
        ],
    );
}
