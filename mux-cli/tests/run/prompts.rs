//! Signals while a passphrase is asked for: whatever happens, nothing that is typed is shown and the terminal is as it
//! was found.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::keys::{keys_only, lock};
use crate::rig::{Rig, is_alive, read_until, wait_for};

const CTRL_C: &[u8] = b"\x03";
const CTRL_D: &[u8] = b"\x04";
const CTRL_Z: &[u8] = b"\x1a";
const CTRL_BACKSLASH: &[u8] = b"\x1c";

/// The end of the question.
const ASKED: &str = "id': ";

/// A shell with job control on a terminal of its own.
struct Shell {
    child: Child,
    keys: ChildStdin,
    screen: ChildStdout,
}

impl Shell {
    fn new(rig: &Rig, shell: &str) -> Self {
        let mut child = Command::new("script")
            .args(["-qec", shell, "/dev/null"])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("PS1", "$ ")
            .env("NO_COLOR", "1")
            .env("XDG_STATE_HOME", rig.path("state"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (keys, screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, keys, screen }
    }

    fn types(&mut self, text: impl AsRef<[u8]>) {
        self.keys.write_all(text.as_ref()).unwrap();
    }

    fn shows(&mut self, text: &str) -> String {
        read_until(&mut self.screen, text)
    }

    /// Whether what is typed is shown, as a program in the foreground finds it.
    fn echoes(&mut self) -> bool {
        self.types("echo is:$(stty -a | grep -o -e '-*echo '):\n");
        self.shows(" :\r\n").contains("is:echo ")
    }

    fn ends(mut self) {
        self.types("exit\n");
        let _ = std::io::copy(&mut self.screen, &mut std::io::sink());
        self.child.wait().unwrap();
    }
}

/// A test that failed leaves no shell behind.
impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command line for a shell.
fn line(rig: &Rig, args: &[&str]) -> String {
    let command = rig.command(args);
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    words.join(" ")
}

/// Ctrl-Z at the question, and back: the shell can be used in between, the question comes again, the answer is secret.
fn stopped_and_continued(shell: &str) {
    let rig = keys_only();
    lock(&rig);
    let mut shell = Shell::new(&rig, shell);
    shell.types(format!("{}\n", line(&rig, &["-w", "web1", "--", "echo hel''lo"])));
    shell.shows(ASKED);
    shell.types(CTRL_Z);
    shell.shows("topped");
    assert!(shell.echoes());
    shell.types("fg\n");
    shell.shows(ASKED);
    shell.types("secret\n");
    let seen = shell.shows("web1: hello\r\n");
    assert!(!seen.contains("secret"), "{seen}");
    assert!(shell.echoes());
    shell.ends();
}

#[test]
fn what_follows_an_end_of_input_at_the_question_stands_on_a_line_of_its_own() {
    let rig = keys_only();
    lock(&rig);
    let mut shell = Shell::new(&rig, "bash --norc --noprofile --noediting -i");
    shell.types(format!("{}\n", line(&rig, &["-w", "web1", "--", "true"])));
    shell.shows(ASKED);
    shell.types(CTRL_D);
    let seen = shell.shows("no passphrase given");
    assert!(seen.starts_with("\r\n"), "{seen:?}");
    shell.ends();
}

#[test]
fn ctrl_z_gives_the_terminal_to_a_shell_that_restores_it_and_fg_asks_again() {
    stopped_and_continued("bash --norc --noprofile --noediting -i");
}

#[test]
fn ctrl_z_gives_the_terminal_to_a_shell_that_does_not_restore_it_and_fg_asks_again() {
    stopped_and_continued("dash -i");
}

#[test]
fn in_the_background_it_stops_and_fg_asks() {
    let rig = keys_only();
    lock(&rig);
    let mut shell = Shell::new(&rig, "bash --norc --noprofile --noediting -i");
    shell.types(format!("{}\n", line(&rig, &["-w", "web1", "--", "echo hel''lo"])));
    shell.shows(ASKED);
    shell.types(CTRL_Z);
    shell.shows("topped");
    shell.types("bg\n");
    shell.shows(" &\r\n");
    wait_for_stop(&mut shell);
    assert!(shell.echoes());
    shell.types("fg\n");
    shell.shows(ASKED);
    shell.types("secret\n");
    let seen = shell.shows("web1: hello\r\n");
    assert!(!seen.contains("secret") && !seen.contains(ASKED), "{seen}");
    shell.ends();
}

/// Has the shell say so as soon as its job has stopped.
fn wait_for_stop(shell: &mut Shell) {
    shell.types("until jobs | grep -q Stopp; do sleep 0.1; done; echo stop''ped\n");
    shell.shows("stopped\r\n");
}

/// A signal at the question, when nothing runs anywhere: the run is over, and the terminal as it was.
fn ended_at_the_question(end: impl FnOnce(&mut Shell), status: i32) {
    let rig = keys_only();
    lock(&rig);
    let mut shell = Shell::new(&rig, "dash -i");
    shell.types(format!(
        "{}; echo status=$?.\n",
        line(&rig, &["-w", "web[1-3]", "--", "true"])
    ));
    shell.shows(ASKED);
    end(&mut shell);
    let seen = shell.shows(&format!("status={status}."));
    assert!(!seen.contains("Ctrl-C again"), "{seen}");
    assert!(seen.starts_with("\r\n") && seen.contains("cancelled=3"), "{seen}");
    assert!(shell.echoes());
    shell.ends();
}

#[test]
fn ctrl_c_at_the_question_ends_a_run_of_which_nothing_runs_yet() {
    ended_at_the_question(|shell| shell.types(CTRL_C), 130);
}

#[test]
fn ctrl_backslash_at_the_question_ends_the_run() {
    ended_at_the_question(|shell| shell.types(CTRL_BACKSLASH), 131);
}

#[test]
fn ctrl_c_at_the_question_of_one_host_leaves_alone_what_runs_on_another() {
    let rig = keys_only();
    std::fs::copy(rig.path("id"), rig.path("plain")).unwrap();
    lock(&rig);
    let config = format!("Host web1\n  IdentityFile {}\nHost *", rig.text("plain"));
    rig.configure(&config);
    let command = format!("echo $$ > {}; exec sleep 600", rig.text("pid"));
    let args = ["-f", "2", "-w", "web1,web2", "--", &command];
    let mut child = rig.on_terminal(&args).spawn().unwrap();
    let (mut keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    read_until(&mut screen, ASKED);
    wait_for("the command on the other host", || {
        std::fs::read_to_string(rig.path("pid")).is_ok_and(|pid| pid.ends_with('\n'))
    });
    keys.write_all(CTRL_C).unwrap();
    let seen = read_until(&mut screen, "command: web1 (");
    assert!(seen.contains("Ctrl-C again stops what runs"), "{seen}");
    assert!(!seen.contains("web2"), "{seen}");
    assert!(is_alive(&rig.path("pid")));
    keys.write_all(CTRL_C).unwrap();
    let mut rest = String::new();
    screen.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("cancelled=2"), "{rest}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    wait_for("the end of the command", || !is_alive(&rig.path("pid")));
}

#[test]
fn quit_stops_what_runs() {
    let rig = Rig::new();
    let command = format!("echo $$ > {}; echo ready; exec sleep 600", rig.text("pid"));
    let mut run = rig.command(&["-w", "web1", "--", &command]);
    let mut child = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    read_until(child.stdout.as_mut().unwrap(), "ready\n");
    kill_process(Pid::from_child(&child), Signal::QUIT).unwrap();
    let ran = rig.finish(child.wait_with_output().unwrap());
    assert_eq!(ran.status, 131, "{}", ran.stderr);
    assert!(ran.stderr.contains("cancelled=1"), "{}", ran.stderr);
    wait_for("the end of the command", || !is_alive(&rig.path("pid")));
}
