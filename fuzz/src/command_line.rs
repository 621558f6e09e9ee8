//! What `mux` itself reads and shows: target syntax, hosts files, the memory between runs, the output of hosts.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Instant;

use bytes::Bytes;
use mux_cli::hub::{Event, RequestId, StreamKind};
use mux_cli::output::{Destination, Facts, Options, Output, Payload};
use mux_cli::plan::{ColorChoice, Format, OutputPlan, SavePlan};
use mux_cli::state::{Server, State};
use mux_cli::targets::{self, HostsFile, Target, TargetSpec};
use mux_ssh::transport::ServerMemory;

/// What follows `-w`, and back: a set that was understood can be folded, and the fold is understood again.
pub(crate) fn target_syntax(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let known: Vec<Target> = ["web1", "web2", "db1"]
        .map(|host| Target::new(None, host.to_owned(), None))
        .into();
    if let Ok(set) = targets::parse(text, &known)
        && !set.is_empty()
    {
        let folded = targets::fold(set.as_slice());
        assert!(
            targets::parse(&folded, &known).is_ok(),
            "{folded} is not understood"
        );
    }
}

/// The input is a hosts file; everything in it is run on, or what wildcards choose from.
pub(crate) fn hosts_file(data: &[u8]) {
    let file = HostsFile {
        label: "fuzz",
        bytes: data,
    };
    for (select, exclude) in [(None, None), (Some("*"), Some("web*")), (Some("[a-c]?"), None)] {
        let texts = |text: Option<&str>| text.into_iter().map(str::to_owned).collect();
        let spec = TargetSpec {
            select: texts(select),
            exclude: texts(exclude),
            hosts: Vec::new(),
        };
        let config = ["web1".to_owned()];
        if let Ok(selection) = targets::select(&spec, &[file], &config) {
            assert!(!selection.targets.is_empty());
        }
    }
}

/// A directory of this process, in memory where the system has one.
static HOME: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    let home = parent.join(format!("mux-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(home.join("mux")).expect("a directory can be made");
    home
});

/// The input is the memory of earlier runs behind its first line, damaged or not. What is learned on top of it is
/// known afterwards, and the file can be read again.
pub(crate) fn host_memory(data: &[u8]) {
    let file = HOME.join("mux/hosts");
    let content = [b"mux host memory 2\n", data].concat();
    std::fs::write(&file, &content).expect("a file can be written");
    let server = Server {
        address: "web1".to_owned(),
        port: 22,
        // Both kinds of line.
        way: if data.len().is_multiple_of(2) {
            String::new()
        } else {
            "gate1:22".to_owned()
        },
    };
    let mut state = State::load(Some(HOME.clone()));
    let _habits = (state.server(&server), state.key(&server, "root"));
    let memory = ServerMemory {
        ident: "SSH-2.0-a".to_owned(),
        ..ServerMemory::default()
    };
    state.learn_server(&server, &memory);
    state.learn_key(&server, "root", "SHA256:x".to_owned());
    state.save().expect("the file can be written");
    let again = State::load(Some(HOME.clone()));
    assert_eq!(again.server(&server), Some(memory), "learned and not kept");
    assert_eq!(
        again.key(&server, "root"),
        Some("SHA256:x"),
        "learned and not kept"
    );
    // Forgotten every time, so that thousands of processes leave nothing behind.
    std::fs::remove_file(&file).expect("the file is there");
}

/// The input is what two hosts print, in pieces: one byte names host, stream and length. A terminal sees no control
/// character of theirs, and the machine-readable form stays readable.
pub(crate) fn output(data: &[u8]) {
    let Some((&form, pieces)) = data.split_first() else {
        return;
    };
    let format = match form % 4 {
        0 => Format::Text,
        1 => Format::Grouped { with_stderr: true },
        2 => Format::Grouped { with_stderr: false },
        _ => Format::Jsonl,
    };
    let plan = OutputPlan {
        format,
        prefix: form & 4 == 0,
        quiet: form & 8 != 0,
        color: ColorChoice::Never,
        spill_max: 1 << 20,
        save: SavePlan::default(),
    };
    let facts = Facts {
        stdout_is_terminal: true,
        stderr_is_terminal: true,
        width: Some(40),
        term: Some("xterm".to_owned()),
        ..Facts::default()
    };
    let hosts = ["web1", "web2"].map(|host| Target::new(None, host.to_owned(), None));
    let now = Instant::now();
    let options = Options::new(&plan, 0, &facts, "/nowhere".into());
    let mut output = Output::new(now, options, hosts.into());
    print(&mut output, pieces);
    output.finish(now);
    let mut shown = Vec::new();
    while let Some(write) = output.poll_write() {
        while output.poll_consumed().is_some() {}
        if let (Payload::Bytes(bytes), Destination::Stdout | Destination::Stderr) = (write.payload, &write.to)
        {
            let text = std::str::from_utf8(&bytes).expect("a terminal is sent text");
            let control = text.chars().find(|c| c.is_control() && !"\n\r\t".contains(*c));
            assert_eq!(control, None, "a host reaches the terminal");
            if write.to == Destination::Stdout {
                shown.extend_from_slice(&bytes);
            }
        }
    }
    if format == Format::Jsonl {
        for line in shown.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let value: Result<serde_json::Value, _> = serde_json::from_slice(line);
            assert!(value.is_ok_and(|value| value.is_object()), "a line is no object");
        }
    }
}

fn print(output: &mut Output, mut pieces: &[u8]) {
    while let Some((&head, rest)) = pieces.split_first() {
        let (piece, rest) = rest.split_at(usize::from(head >> 2).min(rest.len()));
        pieces = rest;
        let stream = if head & 2 == 0 {
            StreamKind::Stdout
        } else {
            StreamKind::Stderr
        };
        output.handle(Event::Output {
            request: RequestId(u32::from(head & 1)),
            stream,
            data: Bytes::copy_from_slice(piece),
        });
        while output.poll_consumed().is_some() {}
    }
}
