//! Processes that are connections: run as ssh runs them, shown when they fail, gone when they are no longer needed.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::rig::{Rig, is_alive, read_until, wait_for};

/// A server, and hosts that are reached through this line. `%p` and the like are for the line.
fn through(line: &str) -> Rig {
    let rig = Rig::new();
    rig.configure(&format!("Host *\n  ProxyCommand {line}\n"));
    rig
}

/// A shell line that carries bytes to the server and back, in nothing but bash.
const CARRY: &str = "bash -c 'exec 3<>/dev/tcp/127.0.0.1/%p; cat <&3 & cat >&3; kill $!'";

#[test]
fn a_process_may_be_the_connection() {
    let rig = through(CARRY);
    rig.check(&["-w", "web1", "--", "echo", "through"], 0, "web1: through\n", "");
}

#[test]
fn another_ssh_may_be_the_connection() {
    let rig = Rig::new();
    let config = rig.text("config");
    rig.configure(&format!(
        "Match host 127.0.0.1 originalhost gate\n  ProxyCommand none\nHost web*\n  ProxyCommand ssh -F {config} -W \
         %h:%p gate\n",
    ));
    rig.check(&["-w", "web1", "--", "echo", "through"], 0, "web1: through\n", "");
}

#[test]
fn tokens_name_the_host_as_it_is_connected_to_the_name_the_port_and_the_user() {
    let rig = Rig::new();
    let said = rig.text("said");
    rig.configure(&format!(
        "Host *\n  User root\n  ProxyCommand echo \"%%h=%h %%n=%n %%p=%p %%r=%r\" >{said}; exit 1\n"
    ));
    rig.run(&["-w", "web1", "--", "true"]);
    let expected = format!("%h=127.0.0.1 %n=web1 %p={} %r=root\n", rig.port);
    assert_eq!(fs::read_to_string(rig.path("said")).unwrap(), expected);
}

#[test]
fn what_it_says_is_shown_when_it_fails_and_obeyed_by_no_terminal() {
    let rig = through("sh -c 'printf \"no way\\\\033[31m there\\\\n\" >&2; exit 3'");
    let (status, stderr) = (4, rig.run(&["-w", "web1", "--", "true"]).stderr);
    assert_eq!(status, 4);
    assert!(
        stderr.contains("unreachable: web1: banner: before its SSH identification: the ProxyCommand ended (it said: no way"),
        "{stderr}"
    );
    assert!(!stderr.contains('\u{1b}'), "{stderr:?}");
}

#[test]
fn a_program_that_is_not_there_is_named_by_the_shell() {
    let rig = through("/nonexistent/proxy %h");
    let ran = rig.run(&["-w", "web[1-3]", "--", "true"]);
    assert_eq!(ran.status, 4);
    assert!(ran.stderr.contains("web[1-3]: banner: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("/nonexistent/proxy"), "{}", ran.stderr);
}

#[test]
fn one_that_ends_without_a_word_has_its_status_shown() {
    let rig = through("sh -c 'exit 7'");
    let ran = rig.run(&["-w", "web1", "--", "true"]);
    assert!(
        ran.stderr
            .contains("the ProxyCommand ended (it said: exit status: 7)"),
        "{}",
        ran.stderr
    );
}

#[test]
fn one_that_says_nothing_is_out_of_time_and_does_not_stay() {
    let rig = Rig::new();
    let pid = rig.path("pid");
    rig.configure(&format!(
        "Host *\n  ProxyCommand sh -c 'echo $$ >{}; trap \"\" HUP TERM; exec sleep 300'\n",
        pid.display()
    ));
    let start = Instant::now();
    let ran = rig.run(&["--connect-timeout", "1", "-w", "web1", "--", "true"]);
    assert_eq!(ran.status, 4);
    assert!(
        ran.stderr
            .contains("banner: no SSH identification through the ProxyCommand within 1s"),
        "{}",
        ran.stderr
    );
    assert!(start.elapsed() < Duration::from_secs(20));
    wait_for("the process to be gone", || !is_alive(&pid));
}

#[test]
fn none_stays_behind_a_run_that_went_well() {
    let rig = Rig::new();
    let pid = rig.path("pid");
    rig.configure(&format!(
        "Host *\n  ProxyCommand bash -c 'echo $$ >{}; exec 3<>/dev/tcp/127.0.0.1/%p; cat <&3 & exec cat >&3'\n",
        pid.display()
    ));
    rig.check(&["-w", "web1", "--", "echo", "through"], 0, "web1: through\n", "");
    wait_for("the process to be gone", || !is_alive(&pid));
}

#[test]
fn three_hundred_hosts_share_a_bounded_number_of_processes() {
    let rig = Rig::new();
    let (alive, most) = (rig.text("alive"), rig.text("most"));
    fs::create_dir(&alive).unwrap();
    // Each leaves its number and says how many of those that did are there.
    rig.configure(&format!(
        "Host *\n  ProxyCommand bash -c '>{alive}/$$; n=0; for f in {alive}/*; do kill -0 ${{f##*/}} 2>/dev/null && \
         n=$((n+1)); done; echo $n >>{most}; exec 3<>/dev/tcp/127.0.0.1/%p; cat <&3 & cat >&3; kill $!'\n"
    ));
    let ran = rig.run(&["-f", "300", "-w", "web[1-300]", "--", "true"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    let counts = fs::read_to_string(rig.path("most")).unwrap();
    let counts: Vec<usize> = counts.lines().map(|line| line.trim().parse().unwrap()).collect();
    assert_eq!(counts.len(), 300);
    let most = counts.iter().max().unwrap();
    assert!(*most <= 64, "{most}");
}

#[test]
fn one_that_prints_anything_else_than_a_server_would_is_no_connection() {
    // Some lines may stand before the identification; what never ends is given up.
    for (line, words) in [
        (
            "printf \"no\\\\033[31m such\\nthing\\n\"",
            "banner: before its SSH identification: the ProxyCommand ended (it said: exit status: 3) (it said: no^[[31m \
             such; thing)",
        ),
        (
            "printf \"\\\\0\\\\1\\\\377\"",
            "banner: before its SSH identification: the ProxyCommand ended (it said: exit status: 3)",
        ),
        (
            "printf \"SSH-2.0-x\\n\"; cat /dev/zero",
            "kex: the server broke the SSH protocol: ",
        ),
        (
            "yes",
            "banner: before its SSH identification: the server broke the SSH protocol: too much text before",
        ),
    ] {
        let rig = through(&format!("sh -c '{line}; exit 3'"));
        let ran = rig.run(&["-w", "web1", "--", "true"]);
        assert_eq!(ran.status, 4, "{}", ran.stderr);
        let start = format!("ok=0 unreachable=1 in TIME\nunreachable: web1: {words}");
        assert!(ran.stderr.starts_with(&start), "{start}\n{}", ran.stderr);
        assert!(!ran.stderr.contains('\u{1b}'), "{:?}", ran.stderr);
    }
}

/// Others may have what was the process's: they and their pipes hold no run up. Those that don't mind a hang-up end with
/// the process; who lives on without it is, as with ssh, nobody's child any more.
#[test]
fn one_whose_children_outlive_it_holds_nobody_up() {
    let start = Instant::now();
    let rig = Rig::new();
    let pid = rig.path("pid");
    rig.configure(&format!(
        "Host *\n  ProxyCommand sh -c 'sleep 300 & echo $! >{}'\n",
        pid.display()
    ));
    let ran = rig.run(&["--connect-timeout", "1", "-w", "web1", "--", "true"]);
    assert_eq!(ran.status, 4);
    let words = "banner: no SSH identification through the ProxyCommand within 1s";
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
    let left = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    kill_process(Pid::from_raw(left).unwrap(), Signal::KILL).unwrap();

    rig.configure(&format!(
        "Host *\n  ProxyCommand bash -c 'sleep 300 & echo $! >{}; exec 3<>/dev/tcp/127.0.0.1/%p; cat <&3 & cat >&3'\n",
        pid.display()
    ));
    rig.check(&["-w", "web1", "--", "echo", "through"], 0, "web1: through\n", "");
    wait_for("the child to be gone", || !is_alive(&pid));
    assert!(
        start.elapsed() < Duration::from_secs(60),
        "nobody waited for them"
    );
}

#[test]
fn an_interrupt_leaves_none_behind() {
    // Before there is a connection, and while commands run through it.
    for (line, command) in [
        ("trap \"\" HUP TERM INT; exec sleep 300", "true"),
        (
            "exec 3<>/dev/tcp/127.0.0.1/%p; cat <&3 & trap \"\" HUP TERM INT; cat >&3",
            "echo started; exec sleep 300",
        ),
    ] {
        let rig = Rig::new();
        let pids = rig.path("pids");
        fs::create_dir(&pids).unwrap();
        let directory = pids.display();
        rig.configure(&format!(
            "Host *\n  ProxyCommand bash -c 'echo $$ >{directory}/%n; {line}'\n"
        ));
        let mut run = rig.command(&["-w", "web[1-5]", "--", command]);
        let mut mux = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        match command {
            "true" => wait_for("five processes", || {
                let all = (1..=5).map(|number| fs::read_to_string(pids.join(format!("web{number}"))));
                all.into_iter()
                    .all(|pid| pid.is_ok_and(|pid| pid.ends_with('\n')))
            }),
            _ => {
                let said = read_until(mux.stdout.as_mut().unwrap(), "started\n");
                let mut more = 5 - said.matches("started").count();
                while more > 0 {
                    read_until(mux.stdout.as_mut().unwrap(), "started\n");
                    more -= 1;
                }
            }
        }
        kill_process(Pid::from_child(&mux), Signal::INT).unwrap();
        let ran = rig.finish(mux.wait_with_output().unwrap());
        assert_eq!(ran.status, 130, "{}", ran.stderr);
        assert!(
            ran.stderr.starts_with("ok=0 cancelled=5 in TIME\n"),
            "{}",
            ran.stderr
        );
        for number in 1..=5 {
            let pid = pids.join(format!("web{number}"));
            wait_for("the processes to be gone", || !is_alive(&pid));
        }
    }
}

/// What stands for a token is for a shell: names that would be more than a name there are refused, as by ssh.
#[test]
fn names_that_a_shell_would_read_differently_start_nothing() {
    let bad = [
        "a;touch made",
        "$(touch made)",
        "`touch made`",
        "-oProxyCommand=touch",
        "a b",
        "a\u{1}b",
        "a|b",
        "a&b",
    ];
    for name in bad {
        for config in [
            format!("Host web1\n  HostName \"{name}\"\n"),
            format!("Host web1\n  User \"{name}\"\n"),
        ] {
            let rig = Rig::new();
            let started = rig.path("started");
            rig.configure(&format!(
                "{config}Host *\n  ProxyCommand echo %h %n %p %r >{}; cd {}; exit 1\n",
                started.display(),
                rig.dir.path().display()
            ));
            let ran = rig.run(&["-w", "web1", "--", "true"]);
            if config.contains("User") && matches!(name, "a b" | "a\u{1}b") {
                // Windows has such names; what a shell makes of one is in the hands of whoever writes the line.
                continue;
            }
            assert_eq!(
                (ran.status, ran.stdout.as_str()),
                (2, ""),
                "{config:?}: {}",
                ran.stderr
            );
            assert!(
                ran.stderr.contains("DIR/config line 2"),
                "{config:?}: {}",
                ran.stderr
            );
            assert!(!started.exists(), "{config:?}");
            assert!(!ran.stderr.contains('\u{1}'), "{:?}", ran.stderr);
        }
    }
}

/// The process hands over a socket and ends; only the system's ssh can take that.
#[test]
fn one_that_passes_its_connection_on_is_for_the_systems_ssh() {
    let rig = Rig::new();
    let script = rig.path("pass.py");
    fs::write(
        &script,
        "import array, socket, sys\n\
         to = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n\
         ours = socket.socket(fileno=1)\n\
         ours.sendmsg([b'\\0'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [to.fileno()]))])\n",
    )
    .unwrap();
    rig.configure(&format!(
        "Host web1\n  ProxyUseFdpass yes\n  ProxyCommand python3 {} %p\n",
        script.display()
    ));
    rig.check(&["-w", "web1", "--", "echo", "through"], 0, "web1: through\n", "");
}
