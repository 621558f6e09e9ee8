//! `--outdir` and `--errdir`: a file for each host, and what is said about directories and files that can't be written.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;

use crate::rig::Rig;

/// The files of a directory and what is in them.
fn files(rig: &Rig, directory: &str) -> BTreeMap<String, String> {
    let entries = fs::read_dir(rig.path(directory)).unwrap().map(Result::unwrap);
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        let name = name.replace(&format!(":{}", rig.port), ":PORT");
        (name, fs::read_to_string(entry.path()).unwrap())
    };
    entries.map(file).collect()
}

fn expected(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    files.iter().map(owned).collect()
}

#[test]
fn each_host_has_a_file_and_nothing_is_printed() {
    let rig = Rig::new();
    fs::create_dir(rig.path("old")).unwrap();
    fs::write(
        rig.path("old/web1"),
        "of an earlier run, and longer than what comes now",
    )
    .unwrap();
    let (out, err) = (rig.text("old"), rig.text("new/err"));
    let second = format!("web1:{}", rig.port);
    let targets = format!("web[1-2],{second}");
    let command = "printf 'no newline'; echo trouble >&2; [ -n \"$SSH_TTY\" ] || exit 3";
    let stderr = "ok=0 failed=3 in TIME\nfailed: web[1-2],web1:PORT: exit status 3\n";
    rig.check(
        &["--outdir", &out, "--errdir", &err, "-w", &targets, "--", command],
        1,
        "",
        stderr,
    );
    let all = |text| expected(&[("web1", text), ("web1:PORT", text), ("web2", text)]);
    assert_eq!(files(&rig, "old"), all("no newline"));
    assert_eq!(files(&rig, "new/err"), all("trouble\n"));
}

#[test]
fn a_host_that_is_lost_leaves_no_output_of_an_earlier_run_behind() {
    let rig = Rig::new();
    fs::create_dir(rig.path("out")).unwrap();
    fs::write(rig.path("out/web1"), "of an earlier run").unwrap();
    rig.know("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    let ran = rig.run(&["--outdir", &rig.text("out"), "-w", "web1", "--", "echo hello"]);
    assert_eq!(ran.status, 4, "{}", ran.stderr);
    assert_eq!(files(&rig, "out"), expected(&[("web1", "")]));
}

#[test]
fn output_that_is_asked_for_by_name_is_printed_besides_and_json_names_the_files() {
    let rig = Rig::new();
    let out = rig.text("out");
    let args = ["-b", "--outdir", &out, "-w", "web[1-2]", "--", "echo hello"];
    rig.check(
        &args,
        0,
        "---------------\nweb[1-2] (2)\n---------------\nhello\n",
        "",
    );
    assert_eq!(
        files(&rig, "out"),
        expected(&[("web1", "hello\n"), ("web2", "hello\n")])
    );
    let mut command = rig.command(&[
        "--output",
        "jsonl",
        "--outdir",
        &out,
        "-w",
        "web1",
        "--",
        "echo again",
    ]);
    let stdout = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let host: serde_json::Value = serde_json::from_str(stdout.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&host["stdout_file"], &host["stderr"], &host["truncated"]),
        (&format!("{out}/web1").into(), &"".into(), &false.into())
    );
    assert_eq!(host.get("stdout"), None);
    assert_eq!(fs::read_to_string(rig.path("out/web1")).unwrap(), "again\n");
}

#[test]
fn a_full_disk_costs_the_output_of_its_hosts_and_no_other() {
    let rig = Rig::new();
    fs::create_dir(rig.path("out")).unwrap();
    symlink("/dev/full", rig.path("out/web1")).unwrap();
    symlink("/dev/full", rig.path("out/web2")).unwrap();
    let out = rig.text("out");
    let ran = rig.run(&["-f", "1", "--outdir", &out, "-w", "web[1-3]", "--", "echo hello"]);
    let stderr = "mux: DIR/out/web1: No space left on device (os error 28), after 0 bytes; what follows is lost\n\
                  mux: web[1-2]: output lost: No space left on device (os error 28)\n";
    assert_eq!(
        (ran.status, ran.stdout.as_str(), ran.stderr.as_str()),
        (125, "", stderr)
    );
    assert_eq!(fs::read_to_string(rig.path("out/web3")).unwrap(), "hello\n");
}

#[test]
fn two_hosts_never_share_a_file() {
    let rig = Rig::new();
    fs::create_dir(rig.path("out")).unwrap();
    fs::write(rig.path("out/web1"), "").unwrap();
    symlink("web1", rig.path("out/web2")).unwrap();
    let out = rig.text("out");
    let ran = rig.run(&["-f", "1", "--outdir", &out, "-w", "web[1-2]", "--", "echo $$"]);
    let stderr = "mux: DIR/out/web2: the file of another host, under another name, after 0 bytes; what follows is lost\n";
    assert_eq!((ran.status, ran.stderr.as_str()), (125, stderr));
    assert_eq!(
        fs::read_to_string(rig.path("out/web1")).unwrap().lines().count(),
        1
    );
}

#[test]
fn a_pipe_in_place_of_a_file_is_not_waited_for() {
    let rig = Rig::new();
    fs::create_dir(rig.path("out")).unwrap();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        rig.path("out/web1"),
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
    )
    .unwrap();
    let ran = rig.run(&["--outdir", &rig.text("out"), "-w", "web[1-2]", "--", "echo hello"]);
    assert_eq!(ran.status, 125, "{}", ran.stderr);
    assert!(ran.stderr.starts_with("mux: DIR/out/web1: "), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(rig.path("out/web2")).unwrap(), "hello\n");
}

#[test]
fn directories_that_can_not_be_used_are_said_before_anything_runs() {
    let rig = Rig::new();
    fs::write(rig.path("file"), "").unwrap();
    let (file, dir) = (rig.text("file"), rig.text("both"));
    let run = |args: &[&str]| rig.run(&[args, &["-w", "web1", "--", "echo hello"][..]].concat());
    let ran = run(&["--outdir", &file]);
    let stderr = "mux: --outdir DIR/file: not a directory\n";
    assert_eq!(
        (ran.status, ran.stdout.as_str(), ran.stderr.as_str()),
        (2, "", stderr)
    );
    let ran = run(&["--errdir", &format!("{file}/below")]);
    let stderr = "mux: --errdir DIR/file/below: not a directory\n";
    assert_eq!((ran.status, ran.stderr.as_str()), (2, stderr));
    let ran = run(&["--outdir", &dir, "--errdir", &format!("{dir}/../both")]);
    assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("the same directory"), "{}", ran.stderr);
}

#[test]
fn many_hosts_use_few_descriptors() {
    let rig = Rig::new();
    let out = rig.text("out");
    let inner = rig.command(&[
        "--transport",
        "local",
        "--outdir",
        &out,
        "-f",
        "4",
        "-w",
        "n[1-200]",
        "--",
        "echo one; sleep 0.01; echo two",
    ]);
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", "ulimit -n 60; exec \"$@\"", "sh"])
        .arg(inner.get_program())
        .args(inner.get_args());
    let ran = rig.finish(shell.env("XDG_STATE_HOME", rig.path("state")).output().unwrap());
    assert_eq!(
        (ran.status, ran.stdout.as_str(), ran.stderr.as_str()),
        (0, "", "")
    );
    let files = files(&rig, "out");
    assert_eq!(files.len(), 200);
    assert!(files.values().all(|text| text == "one\ntwo\n"), "{files:?}");
}
