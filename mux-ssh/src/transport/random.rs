//! Randomness from the cryptographic library, in the shape that `sntrup` asks for. There is no other source.

use std::convert::Infallible;

use rand_core::{TryCryptoRng, TryRng};

/// The library's generator.
pub(super) struct Random;

impl TryRng for Random {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, dst: &mut [u8]) -> Result<(), Infallible> {
        aws_lc_rs::rand::fill(dst).expect("the library's generator ends the process rather than fail");
        Ok(())
    }
}

impl TryCryptoRng for Random {}
