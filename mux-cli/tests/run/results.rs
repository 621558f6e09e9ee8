//! What is printed when everything works, or when only the command fails.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::rig::Rig;

#[test]
fn a_command_prints_behind_the_name_of_its_host_and_nothing_else_is_said() {
    Rig::new().check(&["-w", "web1", "--", "echo", "hello"], 0, "web1: hello\n", "");
}

#[test]
fn standard_error_goes_to_standard_error() {
    let args = ["-w", "web1", "--", "echo out; echo err >&2"];
    Rig::new().check(&args, 0, "web1: out\n", "web1: err\n");
}

#[test]
fn a_failing_command_is_named_with_its_status() {
    let stderr = "ok=0 failed=1 in TIME\nfailed: web1: exit status 3\n";
    Rig::new().check(&["-w", "web1", "--", "exit 3"], 1, "", stderr);
}

#[test]
fn the_largest_remote_status_is_given_on_request() {
    let rig = Rig::new();
    assert_eq!(rig.run(&["-S", "-w", "web1", "--", "exit 37"]).status, 37);
    assert_eq!(rig.run(&["-S", "-w", "web1", "--", "kill -9 $$"]).status, 137);
}

#[test]
fn a_command_that_a_signal_ended_says_so() {
    let stderr = "ok=0 failed=1 in TIME\nfailed: web1: killed by SIGKILL\n";
    Rig::new().check(&["-w", "web1", "--", "kill -9 $$"], 1, "", stderr);
}

#[test]
fn identical_outputs_are_gathered_under_the_folded_names() {
    let stdout = "---------------\nweb[1-5] (5)\n---------------\nhello\n";
    Rig::new().check(&["-b", "-w", "web[1-5]", "--", "echo", "hello"], 0, stdout, "");
}

#[test]
fn thirty_hosts_behind_one_address_all_answer() {
    let rig = Rig::new();
    let stdout = "---------------\nweb[01-30] (30)\n---------------\nhello\n";
    rig.check(
        &[
            "-b",
            "-w",
            "web[01-30]",
            "--connect-timeout",
            "60",
            "--",
            "echo",
            "hello",
        ],
        0,
        stdout,
        "",
    );
}

#[test]
fn output_arrives_whole_and_in_order() {
    let ran = Rig::new().run(&["-N", "-w", "web1", "--", "seq 1 200000"]);
    let expected: String = (1..=200_000).map(|number| format!("{number}\n")).collect();
    assert!(
        ran.stdout == expected,
        "{} bytes instead of {}",
        ran.stdout.len(),
        expected.len()
    );
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
}

#[test]
fn a_command_that_reads_its_input_finds_the_end_of_it() {
    Rig::new().check(&["-w", "web1", "--", "cat; echo done"], 0, "web1: done\n", "");
}

#[test]
fn the_command_line_reaches_the_shell_byte_for_byte() {
    let args = ["-w", "web1", "--", "printf '%s|'", "'a  b'", "\"$((1 + 1))\""];
    Rig::new().check(&args, 0, "web1: a  b|2|\n", "");
}

#[test]
fn a_second_run_remembers_the_server_and_the_key() {
    let rig = Rig::new();
    rig.check(&["-w", "web1", "--", "true"], 0, "", "");
    let state = rig.path("state/mux/hosts");
    let text = fs::read_to_string(&state).unwrap();
    assert!(text.contains("\nserver\t127.0.0.1\t"), "{text}");
    assert!(text.contains("\nkey\t127.0.0.1\t"), "{text}");
    assert_eq!(fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o600);
    rig.check(&["-w", "web1", "--", "echo again"], 0, "web1: again\n", "");
}

#[test]
fn a_state_directory_that_cannot_be_written_changes_nothing() {
    let rig = Rig::new();
    fs::write(rig.path("state"), "a file where a directory should be").unwrap();
    rig.check(&["-w", "web1", "--", "echo hello"], 0, "web1: hello\n", "");
}

#[test]
fn machine_readable_output_has_a_line_for_each_host_and_one_for_the_run() {
    let rig = Rig::new();
    let mut command = rig.command(&[
        "--output",
        "jsonl",
        "-w",
        "web1",
        "--",
        "echo out; echo err >&2; exit 3",
    ]);
    let output = command.output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<serde_json::Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [host, summary] = lines.as_slice() else {
        unreachable!("{lines:?}")
    };
    assert_eq!(
        (&host["host"], &host["status"], &host["rc"]),
        (&"web1".into(), &"failed".into(), &3.into())
    );
    assert_eq!(
        (&host["stdout"], &host["stderr"]),
        (&"out\n".into(), &"err\n".into())
    );
    assert!(host["timings"]["kex"].is_number() && host["timings"]["auth"].is_number());
    assert_eq!(
        (&host["port"], &summary["summary"]["failed"]),
        (&rig.port.into(), &1.into())
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn local_transport_runs_here_under_the_same_names() {
    let args = [
        "--transport",
        "local",
        "-w",
        "a,b",
        "-b",
        "-S",
        "--",
        "echo hello; exit 7",
    ];
    let stderr = "ok=0 failed=2 in TIME\nfailed: a,b: exit status 7\n";
    Rig::new().check(
        &args,
        7,
        "---------------\na,b (2)\n---------------\nhello\n",
        stderr,
    );
}

#[test]
fn the_targets_can_be_listed_without_connecting() {
    Rig::new().check(&["-w", "web[1-3]!web2", "--list-hosts"], 0, "web1\nweb3\n", "");
}

#[test]
fn a_process_that_may_open_few_files_runs_fewer_hosts_at_once() {
    let rig = Rig::new();
    let inner = rig.command(&["-b", "-w", "web[1-5]", "--", "echo hello"]);
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", "ulimit -n 40; exec \"$@\"", "sh"])
        .arg(inner.get_program())
        .args(inner.get_args());
    let ran = rig.finish(shell.env("XDG_STATE_HOME", rig.path("state")).output().unwrap());
    let stdout = "---------------\nweb[1-5] (5)\n---------------\nhello\n";
    assert_eq!(
        (ran.status, ran.stdout.as_str(), ran.stderr.as_str()),
        (0, stdout, "")
    );
}

#[test]
fn output_above_spill_max_is_cut_and_said_and_marked() {
    let rig = Rig::new();
    let command = "head -c 3000000 /dev/zero | tr '\\0' x";
    let ran = rig.run(&["-b", "--spill-max", "2M", "-w", "web1", "--", command]);
    let said = "mux: web1: the last 881.7 KiB of output were cut: over 2.0 MiB in all (--spill-max)\n";
    assert!(
        ran.status == 0 && ran.stderr.starts_with(said),
        "{} {}",
        ran.status,
        ran.stderr
    );
    let mut command = rig.command(&[
        "--output",
        "jsonl",
        "--spill-max",
        "0",
        "-w",
        "web1",
        "--",
        command,
    ]);
    let output = command.output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let host: serde_json::Value = serde_json::from_str(stdout.lines().next().unwrap()).unwrap();
    assert_eq!(host["truncated"], true);
    assert_eq!(host["stdout"].as_str().map(str::len), Some(1 << 20));
    let said = "mux: web1: the last 1.9 MiB of output were cut: over 0 B in all (--spill-max)\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), said);
}
