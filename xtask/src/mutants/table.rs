//! What is broken, where, and which tests must fail for it. Pure data; whoever moves one of these lines moves its row.

/// One test binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Suite {
    /// The tests inside mux-ssh.
    Ssh,
    /// The table of hostile cases.
    Hostile,
    /// What a server can make a client hold.
    Memory,
    /// The tests inside mux-cli.
    Cli,
    /// The hub on its simulated network.
    Hub,
    /// The tests inside mux-proto.
    Proto,
    /// The tests inside mux-core.
    Core,
    /// A relay between peers that are bytes.
    Relay,
}

impl Suite {
    /// What `cargo test` is to run.
    pub(super) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Ssh => &["-p", "mux-ssh", "--all-features", "--lib"],
            Self::Hostile => &["-p", "mux-ssh", "--all-features", "--test", "hostile"],
            Self::Memory => &["-p", "mux-ssh", "--all-features", "--test", "hostile_memory"],
            Self::Cli => &["-p", "mux-cli", "--lib"],
            Self::Hub => &["-p", "mux-cli", "--test", "hub"],
            Self::Proto => &["-p", "mux-proto", "--lib"],
            Self::Core => &["-p", "mux-core", "--lib"],
            Self::Relay => &["-p", "mux-core", "--test", "relay"],
        }
    }
}

/// One text in place of another.
pub(super) struct Edit {
    /// Relative to the root.
    pub(super) file: &'static str,
    /// What stands there, once.
    pub(super) from: &'static str,
    /// What breaks it.
    pub(super) to: &'static str,
}

/// One way to break the product.
pub(super) struct Mutation {
    pub(super) name: &'static str,
    pub(super) edits: &'static [Edit],
    pub(super) suite: Suite,
    /// Each of these must fail.
    pub(super) caught_by: &'static [&'static str],
}

/// Every one of them is a hole that an implementation of SSH, or of a tool like this one, has had.
pub(super) const MUTATIONS: &[Mutation] = &[
    Mutation {
        name: "host-signature-is-not-checked",
        edits: &[Edit {
            file: "mux-ssh/src/transport/proof.rs",
            from: "shown.key.verify(algorithm, &exchange_hash, signature)?;",
            to: "let _ = shown.key.verify(algorithm, &exchange_hash, signature);",
        }],
        suite: Suite::Hostile,
        caught_by: &[
            "table::kex::a_wrong_signature",
            "table::kex::a_key_of_the_wrong_owner_in_the_reply",
            "table::rekey::a_forged_proof_on_rekey",
        ],
    },
    Mutation {
        name: "any-known-host-key-is-the-host-s",
        edits: &[Edit {
            file: "mux-ssh/src/known_hosts/lookup.rs",
            from: "self.marker == Marker::None && *self.blob == *key.blob()",
            to: "self.marker == Marker::None && !key.blob().is_empty()",
        }],
        suite: Suite::Hostile,
        caught_by: &["table::files::known_hosts_of_another_key"],
    },
    Mutation {
        name: "a-changed-host-key-is-accepted",
        edits: &[Edit {
            file: "mux-cli/src/hub/host_key.rs",
            from: "HostKeyPolicy::AcceptNew => {\n            Decision::Refuse(text + &advice)",
            to: "HostKeyPolicy::AcceptNew => {\n            Decision::Distrust(text + &advice)",
        }],
        suite: Suite::Cli,
        caught_by: &[
            "hub::host_key::tests::a_changed_key_is_refused_under_every_policy_and_names_both_fingerprints",
        ],
    },
    Mutation {
        name: "a-refused-host-key-is-used",
        edits: &[Edit {
            file: "mux-ssh/src/client/mod.rs",
            from: "        self.transport.answer_host_key(accept);\n        if !accept {",
            to: "        self.transport.answer_host_key(true);\n        if !accept && self.is_over() {",
        }],
        suite: Suite::Hostile,
        caught_by: &["table::kex::a_host_key_that_is_not_accepted"],
    },
    Mutation {
        name: "strict-sequence-is-not-reset-on-receipt",
        edits: &[Edit {
            file: "mux-ssh/src/transport/packet.rs",
            from: "        self.rekeyed += 1;\n        if strict {",
            to: "        self.rekeyed += 1;\n        if strict && self.packets == 0 {",
        }],
        suite: Suite::Ssh,
        caught_by: &[
            "transport::tests::rekey::the_strict_marker_counts_in_the_first_kexinit_only_and_sequences_start_again",
        ],
    },
    Mutation {
        name: "strict-sequence-is-reset-by-nobody",
        edits: &[
            Edit {
                file: "mux-ssh/src/transport/packet.rs",
                from: "        self.rekeyed += 1;\n        if strict {",
                to: "        self.rekeyed += 1;\n        if strict && self.packets == 0 {",
            },
            Edit {
                file: "mux-ssh/src/transport/packet.rs",
                from: "        self.sealer = sealer;\n        self.usage = Usage::default();\n        if strict {",
                to: "        self.sealer = sealer;\n        self.usage = Usage::default();\n        if strict && self.packets == 0 {",
            },
        ],
        suite: Suite::Ssh,
        caught_by: &[
            "transport::tests::rekey::the_strict_marker_counts_in_the_first_kexinit_only_and_sequences_start_again",
        ],
    },
    Mutation {
        name: "strict-first-packet-may-be-anything",
        edits: &[Edit {
            file: "mux-ssh/src/transport/exchange.rs",
            from: "if self.peer.strict && self.inbound.packets != 1 {",
            to: "if self.peer.strict && self.inbound.packets == 0 {",
        }],
        suite: Suite::Hostile,
        caught_by: &["table::kex::terrapin_insert_before_kexinit"],
    },
    Mutation {
        name: "a-wrong-tag-is-ignored",
        edits: &[Edit {
            file: "mux-ssh/src/transport/packet.rs",
            from: "self.opener.open(self.sequence, packet)?;",
            to: "let _ = self.opener.open(self.sequence, packet);",
        }],
        suite: Suite::Hostile,
        caught_by: &[
            "table::packets::one_flipped_bit_anywhere_is_noticed",
            "table::kex::terrapin_cut_behind_newkeys",
        ],
    },
    Mutation {
        name: "a-payload-is-looked-at-before-its-tag",
        edits: &[Edit {
            file: "mux-ssh/src/transport/packet.rs",
            from: "        self.opener.open(self.sequence, packet)?;\n        let payload = payload_length(packet, length)?;",
            to: "        let opened = self.opener.open(self.sequence, packet);\n        let payload = payload_length(packet, length)?;\n        opened?;",
        }],
        suite: Suite::Hostile,
        caught_by: &["table::packets::one_flipped_bit_anywhere_is_noticed"],
    },
    Mutation {
        name: "another-host-key-on-rekey-is-accepted",
        edits: &[Edit {
            file: "mux-ssh/src/transport/proof.rs",
            from: ".is_some_and(|session| *session.host_key != *host_key_blob)",
            to: ".is_some_and(|session| *session.host_key != *host_key_blob && session.id.is_empty())",
        }],
        suite: Suite::Hostile,
        caught_by: &["table::rekey::another_host_key_on_rekey"],
    },
    Mutation {
        name: "revoked-keys-are-passed-over",
        edits: &[Edit {
            file: "mux-ssh/src/known_hosts/lookup.rs",
            from: "entry.marker == Marker::Revoked && *entry.blob == *key.blob();",
            to: "entry.marker == Marker::Revoked && *entry.blob == *key.blob() && key.blob().is_empty();",
        }],
        suite: Suite::Hostile,
        caught_by: &["table::files::known_hosts_that_revoke"],
    },
    Mutation {
        name: "output-beyond-the-window-is-taken",
        edits: &[Edit {
            file: "mux-ssh/src/client/channel.rs",
            from: "self.window.receive(count).map_err(|_| ChannelViolation::Window)?;",
            to: "let _ = self.window.receive(count);",
        }],
        suite: Suite::Hostile,
        caught_by: &["table::connection::output_beyond_the_window"],
    },
    Mutation {
        name: "the-window-is-given-back-before-it-was-consumed",
        edits: &[Edit {
            file: "mux-ssh/src/client/window.rs",
            from: "        self.unconsumed += count;\n        Ok(())",
            to: "        self.unconsumed += count;\n        self.consume(usize::MAX, INITIAL_WINDOW);\n        Ok(())",
        }],
        suite: Suite::Hostile,
        caught_by: &["table::connection::a_slow_consumer_holds_one_window"],
    },
    Mutation {
        name: "more-is-sent-than-the-server-s-window",
        edits: &[Edit {
            file: "mux-ssh/src/client/channel/sending.rs",
            from: "self.send_window -= i64::try_from(data.len()).unwrap_or(i64::MAX);",
            to: "self.send_window -= i64::from(data.is_empty());",
        }],
        suite: Suite::Hostile,
        caught_by: &["table::connection::input_that_the_server_takes_in_and_gives_no_room_for"],
    },
    Mutation {
        name: "a-lost-command-is-said-not-to-have-run",
        edits: &[Edit {
            file: "mux-ssh/src/client/channel.rs",
            from: "            Command::Sent { .. } | Command::Running => self.is_session(),\n            Command::None | Command::Waiting | Command::Over => false,",
            to: "            Command::Running => self.is_session(),\n            Command::Sent { .. } | Command::None | Command::Waiting | Command::Over => false,",
        }],
        suite: Suite::Hostile,
        caught_by: &[
            "table::connection::a_lost_connection_may_have_run_the_command",
            "table::connection::the_channel_is_closed_without_an_answer",
        ],
    },
    Mutation {
        name: "a-command-is-sent-again-after-any-unimplemented",
        edits: &[Edit {
            file: "mux-ssh/src/client/channel.rs",
            from: "opened || self.command == Command::Sent { sequence }",
            to: "opened || matches!(self.command, Command::Sent { .. }) || sequence == u32::MAX",
        }],
        suite: Suite::Hostile,
        caught_by: &["table::packets::a_number_of_a_packet_that_nobody_sent"],
    },
    Mutation {
        name: "the-hub-calls-a-lost-command-unreachable",
        edits: &[Edit {
            file: "mux-cli/src/hub/session.rs",
            from: "session.lost = Some(may_have_run);",
            to: "session.lost = Some(may_have_run && reason != ChannelFailure::ConnectionLost);",
        }],
        suite: Suite::Hub,
        caught_by: &["login::a_connection_lost_under_a_command_is_unknown_and_says_that_it_may_have_run"],
    },
    Mutation {
        name: "reading-goes-on-while-nobody-takes-anything",
        edits: &[Edit {
            file: "mux-ssh/src/client/protocol.rs",
            from: "self.session.has_room() && !self.transport.waits_for_answer()",
            to: "!self.transport.waits_for_answer()",
        }],
        suite: Suite::Ssh,
        caught_by: &[
            "client::tests::hostile_channels::a_flood_of_openings_stops_the_reading_and_goes_on_when_answers_leave",
            "client::tests::hostile_channels::a_flood_of_requests_stops_the_reading",
            "client::tests::hostile_channels::undelivered_output_stops_the_reading_and_resumes",
        ],
    },
    Mutation {
        name: "reading-goes-on-while-nobody-takes-anything-seen-by-memory",
        edits: &[Edit {
            file: "mux-ssh/src/client/protocol.rs",
            from: "self.session.has_room() && !self.transport.waits_for_answer()",
            to: "!self.transport.waits_for_answer()",
        }],
        suite: Suite::Memory,
        caught_by: &["memory_is_bounded_by_us_and_not_by_the_server"],
    },
    Mutation {
        name: "reading-goes-on-before-the-host-key-is-accepted",
        edits: &[Edit {
            file: "mux-ssh/src/client/protocol.rs",
            from: "self.session.has_room() && !self.transport.waits_for_answer()",
            to: "self.session.has_room()",
        }],
        suite: Suite::Hostile,
        caught_by: &["table::packets::the_host_key_is_accepted_late"],
    },
    Mutation {
        name: "any-number-of-hosts-at-once",
        edits: &[Edit {
            file: "mux-cli/src/hub/pace.rs",
            from: "self.active < self.most && self.active - self.silent.min(MAX_SILENT) < self.limit",
            to: "self.active < self.most && self.silent <= self.limit.max(MAX_SILENT)",
        }],
        suite: Suite::Hub,
        caught_by: &["pacing::the_fanout_bounds_how_many_are_under_way"],
    },
    Mutation {
        name: "any-number-of-handshakes-at-one-address",
        edits: &[Edit {
            file: "mux-cli/src/hub/pace.rs",
            from: "self.busy < HANDSHAKES_PER_ENDPOINT && ",
            to: "self.busy < HANDSHAKES_PER_ENDPOINT * 1000 && ",
        }],
        suite: Suite::Hub,
        caught_by: &[
            "pacing::an_endpoint_sees_at_most_ten_unauthenticated_connections_and_nobody_times_out_in_its_queue",
        ],
    },
    Mutation {
        name: "another-connection-once-somebody-has-answered",
        edits: &[Edit {
            file: "mux-ssh/src/client/auth.rs",
            from: "if self.has_more() && !self.answered {",
            to: "if self.has_more() {",
        }],
        suite: Suite::Ssh,
        caught_by: &[
            "client::tests::prompts::the_end_of_the_connection_behind_a_refused_answer_asks_for_no_other_one",
        ],
    },
    Mutation {
        name: "commands-go-ahead-of-a-key-behind-an-answer",
        edits: &[Edit {
            file: "mux-ssh/src/client/auth.rs",
            from: "self.is_signed() && !self.answered",
            to: "self.is_signed()",
        }],
        suite: Suite::Ssh,
        caught_by: &["client::tests::prompts::a_password_and_then_a_key_that_was_refused_before"],
    },
    Mutation {
        name: "success-for-questions-that-were-never-asked",
        edits: &[Edit {
            file: "mux-ssh/src/client/auth/answers.rs",
            from: "Step::Asked(Request::Password | Request::Interactive { answered: true }) => {",
            to: "Step::Asked(Request::Password | Request::Interactive { .. }) => {",
        }],
        suite: Suite::Hostile,
        caught_by: &["table::prompts::success_for_questions_that_were_never_asked"],
    },
    Mutation {
        name: "passwords-in-debug-output",
        edits: &[Edit {
            file: "mux-ssh/src/secret.rs",
            from: "f.write_str(\"Secret\")",
            to: "write!(f, \"Secret {:?}\", self.0)",
        }],
        suite: Suite::Ssh,
        caught_by: &[
            "client::tests::prompts::an_answer_stands_in_no_debug_output",
            "secret::tests::nothing_about_it_is_printed",
        ],
    },
    Mutation {
        name: "relay-believes-any-source",
        edits: &[Edit {
            file: "mux-core/src/router/judge.rs",
            from: "if self.nodes.get(&header.source) != Some(&link) {",
            to: "if self.nodes.get(&header.source).is_none() {",
        }],
        suite: Suite::Core,
        caught_by: &["router::tests::a_source_that_does_not_lie_beneath_its_link_is_refused"],
    },
    Mutation {
        name: "relay-lets-siblings-talk",
        edits: &[Edit {
            file: "mux-core/src/router/judge.rs",
            from: "if self.nodes.contains_key(&header.destination) {\n            return Verdict::Refuse(ResetCode::NotAllowed);",
            to: "if let Some(&to) = self.nodes.get(&header.destination) {\n            return Verdict::Pass { to, is_last: false };",
        }],
        suite: Suite::Relay,
        caught_by: &["siblings_and_openings_from_below_are_answered"],
    },
    Mutation {
        name: "relay-counts-no-credit",
        edits: &[Edit {
            file: "mux-core/src/router/passage.rs",
            from: "self.credit.checked_sub(len).ok_or(ResetCode::CreditExceeded)?;",
            to: "self.credit.saturating_sub(len);",
        }],
        suite: Suite::Relay,
        caught_by: &["more_than_the_credit_costs_the_channel_at_both_ends"],
    },
    Mutation {
        name: "relay-says-the-loss-before-the-data",
        edits: &[Edit {
            file: "mux-proto/src/connection/passing.rs",
            from: "if before.is_empty() {",
            to: "if before.len() < MAX_FLOWS {",
        }],
        suite: Suite::Proto,
        caught_by: &["connection::tests::relaying::what_a_lost_node_had_sent_leaves_before_its_loss_is_said"],
    },
    Mutation {
        name: "relay-keeps-quiet-about-a-lost-child",
        edits: &[Edit {
            file: "mux-core/src/relay.rs",
            from: "let _ = above.relay_end(up, &gone);",
            to: "let _ = (above, up);",
        }],
        suite: Suite::Relay,
        caught_by: &[
            "a_wrong_magic_is_shown_escaped_to_those_above",
            "half_a_frame_is_said_to_those_who_waited_for_the_rest",
        ],
    },
];
