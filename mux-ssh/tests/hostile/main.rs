//! A client against servers that break the protocol on purpose: the end-to-end table of hostile cases, one test per
//! case, each through the whole client. What is expected is always an exact error (or none), every command told its
//! end exactly once, and bounded buffers.
//!
//! Where each line of the list of cases is tested; what exists only later (passwords, certificates, jumps, files) is not
//! in it.
//!
//! | line | case | here | elsewhere |
//! | --- | --- | --- | --- |
//! | 1 | Terrapin | `kex::terrapin_*`, `kex::an_offer_that_is_tampered_with…`, `rekey::a_lost_packet…` | |
//! | 2 | strict marker on rekey | `rekey::the_server_rekeys_during_output` | |
//! | 3 | packet lengths | `packets::*_lengths_*`, `packets::noise_…` | `transport/tests` |
//! | 4 | padding, empty payloads | `packets::padding_…`, `packets::packets_without_a_payload` | |
//! | 5 | flipped bits | `packets::one_flipped_bit_*` | |
//! | 6 | allocate what arrived | | `hostile_memory.rs` |
//! | 7 | KEXINIT | `kex::*kexinit*`, `kex::names_…`, `kex::lists_…` | |
//! | 8 | guesses | `kex::*guess*` | `client/tests/flights.rs` |
//! | 9 | order in the exchange | `kex::messages_…`, `kex::two_replies`, `kex::newkeys_*` | |
//! | 10 | leading zeros | `kex::secrets_with_leading_zeros` | `transport/tests` |
//! | 11 | host keys, public values | `kex::host_keys_…`, `kex::*signature*`, `kex::public_values_…` | `keys/tests.rs` |
//! | 12 | host key not accepted, changed | `kex::a_host_key_that_is_not_accepted`, `rekey::another_host_key…` | |
//! | 13 | EXT_INFO | `auth::ext_info_*` | |
//! | 14 | rekey at any time | `rekey::*`, `patience::the_server_rekeys_while…` | |
//! | 15 | nothing between KEXINIT and NEWKEYS | `rekey::input_is_held_back…`, `rekey::packets_of_services…` | `transport/tests` |
//! | 16 | no compression | `kex::compression_is_not_offered`, `kex::lists_without_overlap` | |
//! | 17 | ends anywhere, single bytes, never reads | `packets::*`, `connection::input_for_a_server_that_does_not_read…` | `client_and_server.rs` |
//! | 18 | SUCCESS at the wrong time | `auth::success_*` | |
//! | 19 | banners | `auth::banner*`, `auth::a_banner_after_the_login` | |
//! | 20 | PK_OK | `auth::pk_ok_*` | |
//! | 21 | other methods | `auth::messages_of_methods…` | |
//! | 22 | replayed signatures | `patience::a_replayed_signature…`; every signature is checked to be for its session | |
//! | 23 | agents | | `agent/tests.rs`, `tests/agent.rs` |
//! | 24 | agent channels, secrets before trust | `auth::an_agent_channel…`, `kex::a_host_key_that_is_not_accepted` | |
//! | 26 | channels from the far side | `connection::channels_*` | |
//! | 27 | windows, sizes, streams, ends | `connection::*output*`, `connection::the_end_of_output…` | |
//! | 28 | slow consumers | `connection::a_slow_consumer…` | `hostile_memory.rs` |
//! | 29 | channel requests | `connection::requests_…`, `connection::*result*`, `connection::a_signal…` | |
//! | 30 | result before output | `connection::the_result_before_the_output` | |
//! | 31 | large writes | `connection::a_command_that_fits_no_packet` | |
//! | 32 | global requests | `connection::host_keys_without_end…`, `connection::unknown_global_requests…` | |
//! | 33 | known_hosts | | `known_hosts/tests.rs` |
//!
//! That such servers change nothing for others on the same loop: `mux-cli/tests/hostile_among_good.rs`.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, and looks at the events that it is about"
)]

mod auth;
mod connection;
mod harness;
mod kex;
mod packets;
mod patience;
mod rekey;
