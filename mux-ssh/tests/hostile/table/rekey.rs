//! New keys at any time, from either side.

use std::time::Duration;

use bytes::Bytes;
use mux_ssh::client::Stdin;
use mux_ssh::message;
use mux_ssh::server::key_file::Seed;
use mux_ssh::server::{Act, Moment, Plan, Point};
use mux_ssh::transport::RekeyLimits;
use mux_ssh::{Error, Violation};

use super::Run::Servers;
use super::harness::{Case, End, Reply, Turn};
use super::packets::{ciphers, is_noise};
use super::table_rows;

const CURVE: &str = "curve25519-sha256";

/// New keys after this many bytes, in either direction.
fn every(bytes: u64) -> RekeyLimits {
    RekeyLimits {
        bytes,
        ..RekeyLimits::default()
    }
}

/// 600,000 bytes of output under such limits.
fn bulk(server: RekeyLimits, client: RekeyLimits) -> Case {
    Case::good()
        .reply(Reply::Bulk(600_000))
        .kex(CURVE)
        .server(|config| config.rekey = server)
        .client(|config| config.rekey = client)
        .end(End::Lives)
        .also(|pair| assert_eq!(pair.seen.stdout.len(), 600_000))
}

/// A command runs, and the server wants new keys by this plan.
pub(crate) fn during_rekey(plan: Plan) -> Case {
    Case::new(plan)
        .reply(Reply::Nothing)
        .kex(CURVE)
        .script([Turn::Rekey])
}

fn at(point: Point, act: Act) -> Plan {
    Plan::new().with(point, act)
}

fn ignored() -> Bytes {
    Bytes::from_static(&[message::IGNORE, 0, 0, 0, 0])
}

table_rows! { Kex:

the_server_rekeys_during_output, Harmless, "new keys every 1 KiB, 10 kB, 100 kB of output; the strict marker is absent in all but the first" =>
    Servers(|| [1024, 10_000, 100_000].map(|bytes| bulk(every(bytes), RekeyLimits::default())).into());
the_client_rekeys_during_output, Harmless, "nothing: the client wants new keys every 1 KiB, 10 kB, 100 kB" =>
    Servers(|| [1024, 10_000, 100_000].map(|bytes| bulk(RekeyLimits::default(), every(bytes))).into());
both_rekey_at_once, Harmless, "both sides want new keys at the same time" =>
    Servers(|| [1024, 10_000].map(|bytes| bulk(every(bytes), every(bytes))).into());
the_server_rekeys_at_every_point_of_the_session, Harmless, "new keys after every 1 to 19 packets: in the login, before the channel, behind the command" =>
    Servers(|| (1..20).map(|packets| {
        Case::good().kex(CURVE).server(|config| config.rekey.packets = packets)
    }).collect());
the_client_rekeys_at_every_point_of_the_session, Harmless, "nothing: the client does" =>
    Servers(|| (1..20).map(|packets| {
        Case::good().kex(CURVE).client(|config| config.rekey.packets = packets)
    }).collect());
every_cipher_is_renewed, Harmless, "new keys every 10 kB under each cipher" =>
    Servers(|| ciphers().map(|cipher| bulk(every(10_000), RekeyLimits::default()).cipher(cipher)).collect());
input_is_held_back_during_a_key_exchange, Harmless, "a large write cut by key exchanges of both sides; the server is strict about what comes between" =>
    Servers(|| {
        let mut case = Case::good()
            .reply(Reply::Cat)
            .kex(CURVE)
            .client(|config| config.rekey = every(20_000))
            .server(|config| config.rekey = every(30_000))
            .script([Turn::Input(500_000), Turn::InputEnds])
            .end(End::Lives)
            .also(|pair| assert_eq!(pair.seen.stdout.len(), 500_000));
        case.stdin = Stdin::Open;
        vec![case]
    });
the_server_rekeys_while_a_signature_is_made, Harmless, "new keys three times while an agent is asked for a signature" =>
    Servers(|| {
        let mut case = Case::good().kex(CURVE)
            .script([Turn::Answer, Turn::Rekey, Turn::Rekey, Turn::Rekey, Turn::Answer]);
        case.prompt = false;
        vec![case]
    });
rekeys_without_end, Flood, "new keys 300 times over while nothing else happens" =>
    Servers(|| vec![
        Case::good().kex(CURVE).reply(Reply::Nothing).script(vec![Turn::Rekey; 300]).end(End::Waits),
    ]);

another_host_key_on_rekey, Forgery, "another host key, properly proven, in the second key exchange" =>
    Servers(|| {
        let other = Seed::generate().unwrap().host_key().unwrap();
        vec![
            during_rekey(Plan::new())
                .server(|config| config.rekey_host_keys = Some([other].into()))
                .violates(Violation::HostKeyChanged),
        ]
    });
a_forged_proof_on_rekey, Forgery, "a wrong signature in the second key exchange" =>
    Servers(|| vec![
        during_rekey(at(Point::Before(Moment::KexReply, 2), Act::Patch { from_end: 3, mask: 1 }))
            .violates(Violation::Signature),
    ]);
packets_of_services_between_kexinit_and_newkeys_of_a_rekey, Time, "messages of every service while the server may send none" =>
    Servers(|| [message::SERVICE_ACCEPT, message::EXT_INFO, message::USERAUTH_BANNER, message::GLOBAL_REQUEST, message::CHANNEL_DATA]
        .map(|number| {
            during_rekey(at(
                Point::After(Moment::KexInit, 2),
                Act::Packet(vec![number, 0, 0, 0, 0].into()),
            )).violates(Violation::UnexpectedMessage(number))
        })
        .into());
a_second_kexinit_in_a_rekey, Order, "KEXINIT bit by bit again" =>
    // Under keys, what is repeated bit by bit is no packet any more; before that it is told by its number.
    Servers(|| vec![
        during_rekey(at(Point::Before(Moment::KexInit, 2), Act::Replay))
            .end(End::FailsLike(|error| matches!(error, Error::Violation(_)))),
        during_rekey(at(Point::After(Moment::KexInit, 2), Act::Packet(vec![message::KEXINIT; 60].into())))
            .violates(Violation::UnexpectedMessage(message::KEXINIT)),
    ]);
newkeys_of_a_rekey_out_of_turn, Order, "NEWKEYS instead of the reply, and twice" =>
    Servers(|| {
        let newkeys = Violation::UnexpectedMessage(message::NEWKEYS);
        let packet = || Act::Packet(vec![message::NEWKEYS].into());
        vec![
            during_rekey(at(Point::Before(Moment::KexReply, 2), packet())).violates(newkeys),
            // Under the old keys, where the new ones count; and under the new ones.
            during_rekey(at(Point::After(Moment::NewKeys, 2), packet())).end(End::FailsLike(is_noise)),
            during_rekey(Plan::new())
                .script([Turn::Rekey, Turn::Send(vec![message::NEWKEYS].into(), 1)])
                .violates(newkeys),
        ]
    });
a_lost_packet_behind_the_newkeys_of_a_rekey, Forgery, "somebody on the way cuts out the first packet under the second keys" =>
    Servers(|| vec![
        during_rekey(at(Point::Before(Moment::Other, 1), Act::Lose))
            .script([Turn::Rekey, Turn::Send(ignored(), 2)])
            .end(End::FailsLike(is_noise)),
    ]);
a_rekey_without_end, Stall, "a key exchange that is begun and not finished leaves the client mute: that has an end too" =>
    Servers(|| [Moment::KexInit, Moment::KexReply].map(|moment| {
        during_rekey(at(Point::After(moment, 2), Act::Stall))
            .script([Turn::Rekey, Turn::Pass(Duration::from_secs(600))])
            .end(End::FailsLike(|error| matches!(error, Error::RekeyTimeout | Error::Silent)))
    }).into());
an_offer_of_other_algorithms_in_a_rekey, Type, "a second offer with nothing in common" =>
    Servers(|| {
        let empty = |len: usize| vec![0; len];
        let offer = [&[message::KEXINIT][..], &[7; 16], &empty(40), &[0], &[0; 4]].concat();
        vec![
            during_rekey(at(Point::Before(Moment::KexInit, 2), Act::Replace(offer.into())))
                .fails(mux_ssh::Incompatible::Compression("nothing".to_owned())),
        ]
    });
silence_in_the_middle_of_a_command, Stall, "nothing any more behind the confirmation of a command" =>
    Servers(|| {
        let quarter = Turn::Pass(Duration::from_secs(15));
        vec![
            Case::new(at(Point::After(Moment::ChannelSuccess, 1), Act::Stall))
                .reply(Reply::Nothing)
                .script(vec![quarter; 20])
                .fails(Error::Silent),
        ]
    });
}
