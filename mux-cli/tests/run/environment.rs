//! Variables that are asked for, and what is said of those that a server does not take.

use crate::rig::Rig;

#[test]
fn variables_reach_the_command_where_the_server_takes_them() {
    let rig = Rig::with("AcceptEnv A_* MUX_*");
    let args = [
        "--env",
        "A_1=one  two",
        "--env",
        "A_2=",
        "--env-info",
        "-f",
        "1",
        "-w",
        "web[1-2],web1:PORT",
        "--",
        "echo \"$A_1|${A_2-unset}|$MUX_HOST|$MUX_NODENUM|$MUX_NUMNODES\"",
    ];
    let port = rig.port.to_string();
    let args: Vec<String> = args.iter().map(|word| word.replace("PORT", &port)).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let ran = rig.run(&args);
    let mut lines: Vec<&str> = ran.stdout.lines().collect();
    lines.sort_unstable();
    let expected = [
        "web1: one  two||web1|0|3",
        "web1:PORT: one  two||web1|2|3",
        "web2: one  two||web2|1|3",
    ];
    assert_eq!((lines.as_slice(), ran.stderr.as_str()), (expected.as_slice(), ""));
}

#[test]
fn variables_that_the_server_refuses_are_named_once_for_all_hosts() {
    let rig = Rig::with("AcceptEnv A");
    let args = [
        "--env",
        "A=1",
        "--env",
        "B=2",
        "--env",
        "C=3",
        "-b",
        "-w",
        "web[1-3]",
        "--",
        "echo $A$B$C",
    ];
    rig.check(
        &args,
        0,
        "---------------\nweb[1-3] (3)\n---------------\n1\n",
        "mux: web[1-3]: B, C not set: the server does not take it; see AcceptEnv in its sshd_config\n",
    );
    rig.check(
        &[&["-q"], &args[..]].concat(),
        0,
        "---------------\nweb[1-3] (3)\n---------------\n1\n",
        "",
    );
}

#[test]
fn variables_reach_commands_that_run_here() {
    let args = [
        "--transport",
        "local",
        "--env",
        "A=x y",
        "--env-info",
        "-w",
        "a",
        "--",
        "echo $A $MUX_HOST $MUX_NODENUM/$MUX_NUMNODES",
    ];
    Rig::new().check(&args, 0, "a: x y a 0/1\n", "");
}

#[test]
fn variables_of_the_configuration_are_sent_without_a_word_about_those_refused() {
    let rig = Rig::with("AcceptEnv A_* MUX_*");
    rig.check(
        &[
            "-o",
            "SendEnv=B_*",
            "-o",
            "SetEnv=A_1=set A_2=two B_1=refused",
            "--env",
            "A_1=asked",
            "-w",
            "web1",
            "--",
            "echo \"$A_1|$A_2|${B_1-unset}\"",
        ],
        0,
        "web1: asked|two|unset\n",
        "",
    );
}

#[test]
fn a_command_ends_well_however_often_the_configuration_wants_keys_changed() {
    let rig = Rig::with("");
    let ran = rig.run(&[
        "-o",
        "RekeyLimit=16",
        "-w",
        "web1",
        "--",
        "head -c 1000000 /dev/zero | tr '\\0' x",
    ]);
    assert_eq!(
        (ran.stdout.len(), ran.stderr.as_str()),
        ("web1: \n".len() + 1_000_000, "")
    );
}
