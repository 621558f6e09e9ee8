//! The machine-readable form, against its schema.

use serde_json::Value;

use super::*;

fn lines_of(run: &mut Run) -> Vec<Value> {
    run.finish();
    let lines = run.stdout.split_inclusive(|byte| *byte == b'\n');
    let values: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
    let schema: Value = serde_json::from_str(include_str!("../../../schema/run.v1.schema.json")).unwrap();
    for value in &values {
        assert_eq!(
            violations(&schema, &schema, value),
            Vec::<String>::new(),
            "{value}"
        );
    }
    values
}

/// What is wrong with `value` by the parts of JSON Schema that our schema uses.
fn violations(root: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    for (keyword, rule) in schema.as_object().unwrap() {
        let holds = match keyword.as_str() {
            "$schema" | "$id" | "$defs" | "title" | "description" => true,
            "$ref" => violations(root, root.pointer(&rule.as_str().unwrap()[1..]).unwrap(), value).is_empty(),
            "oneOf" => {
                let fit = |schema: &&Value| violations(root, schema, value).is_empty();
                rule.as_array().unwrap().iter().filter(fit).count() == 1
            }
            "allOf" => rule
                .as_array()
                .unwrap()
                .iter()
                .all(|schema| violations(root, schema, value).is_empty()),
            "const" => rule == value,
            "enum" => rule.as_array().unwrap().contains(value),
            "type" => match rule.as_array() {
                Some(types) => types.iter().any(|name| has_type(name, value)),
                None => has_type(rule, value),
            },
            "minimum" => value.as_f64().is_none_or(|value| value >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|value| value <= rule.as_f64().unwrap()),
            "required" => value.as_object().is_none_or(|object| {
                rule.as_array()
                    .unwrap()
                    .iter()
                    .all(|name| object.contains_key(name.as_str().unwrap()))
            }),
            "additionalProperties" => value
                .as_object()
                .is_none_or(|object| object.keys().all(|name| schema["properties"].get(name).is_some())),
            "properties" => {
                for (name, schema) in rule.as_object().unwrap() {
                    wrong.extend(
                        value
                            .get(name)
                            .into_iter()
                            .flat_map(|value| violations(root, schema, value)),
                    );
                }
                true
            }
            other => panic!("the schema uses {other}, which this test does not know"),
        };
        if !holds {
            wrong.push(format!("{keyword}: {rule} for {value}"));
        }
    }
    wrong
}

fn has_type(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "null" => value.is_null(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        other => panic!("{other}"),
    }
}

fn run(hosts: &[&str]) -> Run {
    Run::new(plain(Format::Jsonl), hosts)
}

#[test]
fn an_object_a_host_then_the_summary() {
    let mut run = run(&["web1", "root@db1:2222"]);
    run.output.identify(RequestId(0), "jane", 22);
    run.print(1, OUT, b"x\n\"y\"\n");
    run.print(1, ERR, b"oops");
    let timings = Timings {
        tcp: Some(Duration::from_micros(1500)),
        ..Timings::default()
    };
    run.end(1, Outcome { timings, ..exited(2) });
    run.end(0, failed(Status::Unreachable, Stage::Tcp, "connection refused"));
    run.check(
        concat!(
            r#"{"v":1,"host":"db1","user":"root","port":2222,"status":"failed","rc":2,"signal":null,"#,
            r#""stdout":"x\n\"y\"\n","stderr":"oops","truncated":false,"attempts":1,"#,
            r#""timings":{"dns":null,"tcp":0.0015,"kex":null,"auth":null,"run":null},"error":null}"#,
            "\n",
            r#"{"v":1,"host":"web1","user":"jane","port":22,"status":"unreachable","rc":null,"signal":null,"#,
            r#""stdout":"","stderr":"","truncated":false,"attempts":1,"#,
            r#""timings":{"dns":null,"tcp":null,"kex":null,"auth":null,"run":null},"#,
            r#""error":{"stage":"tcp","message":"connection refused"}}"#,
            "\n",
            r#"{"summary":{"v":1,"hosts":2,"ok":0,"failed":1,"timeout":0,"unreachable":1,"auth":0,"hostkey":0,"#,
            r#""unknown":0,"skipped":0,"cancelled":0,"seconds":1.4,"spilled_bytes":0,"cut_bytes":0}}"#,
            "\n",
        ),
        "ok=0 failed=1 unreachable=1 in 1.4s\nfailed: root@db1:2222: exit status 2\n\
         unreachable: web1: tcp: connection refused\n",
    );
}

#[test]
fn every_status_and_stage_fits_the_schema() {
    use Status as S;
    let statuses = [
        S::Ok,
        S::Failed,
        S::Timeout,
        S::Unreachable,
        S::Auth,
        S::HostKey,
        S::Unknown,
        S::Skipped,
        S::Cancelled,
    ];
    let stages = [
        Stage::Dns,
        Stage::Tcp,
        Stage::Banner,
        Stage::Kex,
        Stage::HostKey,
        Stage::Auth,
        Stage::Channel,
        Stage::Command,
    ];
    let mut run = run(&["h[1-17]"]);
    for (host, status) in (0..).zip(statuses) {
        run.end(host, outcome(status, None));
    }
    for (host, stage) in (9..).zip(stages) {
        run.end(host, failed(Status::Unreachable, stage, "x"));
    }
    assert_eq!(lines_of(&mut run).len(), 18);
}

#[test]
fn output_that_is_not_utf8_is_base64() {
    let mut run = run(&["a"]);
    run.print(0, OUT, b"\xff\x00x");
    run.print(0, ERR, "ü\0".as_bytes());
    run.exit(0, 0);
    let lines = lines_of(&mut run);
    assert_eq!(lines[0]["stdout_b64"], "/wB4");
    assert_eq!(lines[0]["stderr"], "ü\0");
    assert_eq!(lines[0].get("stdout"), None);
}

#[test]
fn large_output_is_in_a_file_that_is_named() {
    let limits = Limits {
        in_memory: 8,
        ..Limits::default()
    };
    let mut run = Run::with_limits(plain(Format::Jsonl), &["a", "b"], limits);
    run.print(1, ERR, b"0123456789");
    run.print(1, ERR, b"abc");
    run.exit(1, 0);
    run.exit(0, 0);
    let lines = lines_of(&mut run);
    assert_eq!(lines[0]["stderr_file"], "/nowhere/mux-1/1.stderr");
    assert_eq!(
        run.files[std::path::Path::new("/nowhere/mux-1/1.stderr")],
        b"0123456789abc"
    );
    assert_eq!(lines[2]["summary"]["spilled_bytes"], 13);
}

#[test]
fn cut_output_is_marked() {
    let limits = Limits {
        in_memory: 8,
        in_memory_total: 1 << 20,
        spilled: 5,
    };
    let mut run = Run::with_limits(plain(Format::Jsonl), &["a"], limits);
    for _ in 0..3 {
        run.print(0, OUT, b"0123456789");
    }
    run.exit(0, 0);
    let lines = lines_of(&mut run);
    assert_eq!(
        (&lines[0]["truncated"], &lines[1]["summary"]["cut_bytes"]),
        (&true.into(), &22.into())
    );
}

#[test]
fn no_control_character_reaches_the_terminal() {
    let mut run = Run::new(options(Format::Jsonl, &facts(true)), &["a"]);
    run.print(0, OUT, "\x1b[2J \x7f \u{9b}2J ü\n".as_bytes());
    run.exit(0, 0);
    let lines = lines_of(&mut run);
    assert_eq!(lines[0]["stdout"], "\x1b[2J \x7f \u{9b}2J ü\n");
    let text = String::from_utf8(run.stdout).unwrap();
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
}

#[test]
fn hosts_that_have_not_ended_are_cancelled() {
    let mut run = run(&["a"]);
    run.print(0, OUT, b"so far");
    let lines = lines_of(&mut run);
    assert_eq!(
        (&lines[0]["status"], &lines[0]["stdout"]),
        (&"cancelled".into(), &"so far".into())
    );
}

#[test]
fn a_reader_that_stands_still_keeps_results_in_the_store() {
    let mut run = run(&["h[1-40]"]);
    for host in 0..40 {
        run.feed(host, OUT, &vec![b'x'; 512 * 1024]);
        run.output.handle(Event::Finished {
            request: RequestId(host),
            outcome: exited(0),
        });
    }
    let first = run.output.poll_write().unwrap();
    assert!(first.cost() <= write::MAX_WRITE);
    let Renderer::Jsonl { finished, .. } = &run.output.renderer else {
        panic!()
    };
    assert_eq!(finished.len(), 39, "one object is rendered at a time");
}
