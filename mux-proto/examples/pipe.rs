//! Two protocols and no network: what one sends, the other receives, a slow reader slows its writer, and time is a
//! number that the program makes up. Decides nothing; shows who calls what, and when.
//!
//! ```text
//! cargo run -p mux-proto --example pipe
//! ```

use std::convert::Infallible;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use mux_proto::{Close, Protocol, Raw, RawEvent, SendQueue};

/// What a real network would hold: output of one side that the other has not taken in.
#[derive(Default)]
struct Wire {
    out: SendQueue,
    input: BytesMut,
    ended: bool,
}

impl Wire {
    /// One flight from `from` to `to`. `false` once nothing moves any more.
    fn fly(&mut self, now: Instant, from: &mut Raw, to: &mut Raw) -> Result<bool, Infallible> {
        // Output is pulled, and only while there is room for it.
        if self.out.has_room() {
            from.poll_transmit(now, &mut self.out);
        }
        // A receiver that does not want input leaves it on the wire.
        if !to.wants_input() {
            return Ok(false);
        }
        let flight = self.out.take(usize::MAX);
        self.input.extend_from_slice(&flight);
        to.handle_input(now, &mut self.input)?;
        if flight.is_empty() && from.poll_close() == Some(Close::Write) && !self.ended {
            self.ended = true;
            to.handle_eof(now)?;
        }
        Ok(!flight.is_empty())
    }
}

fn main() -> io::Result<()> {
    let start = Instant::now();
    let (mut writer, mut reader, mut wire) = (Raw::new(), Raw::new(), Wire::default());
    for _ in 0..16 {
        writer.send(Bytes::from(vec![b'x'; 64 * 1024]));
    }
    writer.finish();

    let mut received = 0;
    for second in 0.. {
        let now = start + Duration::from_secs(second);
        let Ok(mut moving) = wire.fly(now, &mut writer, &mut reader);
        while moving {
            moving = {
                let Ok(moving) = wire.fly(now, &mut writer, &mut reader);
                moving
            };
        }
        while let Some(event) = reader.poll_event() {
            match event {
                RawEvent::Data(data) => received += data.len(),
                RawEvent::Eof => {
                    return writeln!(io::stdout(), "{second} s: the end, after {received} bytes");
                }
            }
        }
        let waiting = reader.unconsumed();
        writeln!(
            io::stdout(),
            "{second} s: {received} bytes, {waiting} to look at, {} unsent",
            writer.unsent()
        )?;
        // A reader that looks at what it got once a second.
        reader.consume(waiting);
    }
    Ok(())
}
