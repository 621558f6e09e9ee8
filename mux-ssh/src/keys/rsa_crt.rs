//! The two exponents that the library wants and OpenSSH's files leave out: `d mod (p - 1)` and `d mod (q - 1)`.
//! Plain long division whose steps do not depend on the numbers; the library checks the result when it takes the key.

use zeroize::Zeroizing;

/// `d mod (prime - 1)`, big-endian and as long as `prime`.
pub(super) fn exponent(d: &[u8], prime: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut modulus = Zeroizing::new(prime.to_vec());
    if let Some(last) = modulus.last_mut() {
        // A prime is odd; what is not will be refused by the library.
        *last &= !1;
    }
    remainder(d, &modulus)
}

/// `number mod modulus`, bit by bit: double the rest, add a bit, subtract the modulus if that leaves no borrow.
fn remainder(number: &[u8], modulus: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut rest = Zeroizing::new(vec![0_u8; modulus.len()]);
    let mut reduced = Zeroizing::new(vec![0_u8; modulus.len()]);
    for byte in number {
        for bit in (0..8).rev() {
            let carry = double_and_add(&mut rest, (byte >> bit) & 1);
            let borrow = subtract(&rest, modulus, &mut reduced);
            // Taken if the doubled rest was longer than the modulus or not smaller than it.
            let mask = 0_u8.wrapping_sub(carry | (borrow ^ 1));
            for (rest, reduced) in rest.iter_mut().zip(reduced.iter()) {
                *rest = (*rest & !mask) | (reduced & mask);
            }
        }
    }
    rest
}

/// `number = 2 * number + bit`; returns the bit that fell out.
fn double_and_add(number: &mut [u8], bit: u8) -> u8 {
    number.iter_mut().rev().fold(bit, |carry, byte| {
        let out = *byte >> 7;
        *byte = (*byte << 1) | carry;
        out
    })
}

/// `out = left - right`; returns the borrow.
fn subtract(left: &[u8], right: &[u8], out: &mut [u8]) -> u8 {
    let digits = left.iter().zip(right).zip(out.iter_mut()).rev();
    digits.fold(0, |borrow, ((&left, &right), out)| {
        let [high, low] = u16::from(left)
            .wrapping_sub(u16::from(right))
            .wrapping_sub(u16::from(borrow))
            .to_be_bytes();
        *out = low;
        high & 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remainder_is_that_of_integer_division() {
        let mut state = 7_u64;
        for _ in 0..2000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let (number, modulus) = (state, (state >> 40) as u32 | 1 << 23);
            let expected = u32::try_from(number % u64::from(modulus)).map(u32::to_be_bytes);
            let found = remainder(&number.to_be_bytes(), &modulus.to_be_bytes());
            assert_eq!(
                Ok(found.as_slice()),
                expected.as_ref().map(<[u8; 4]>::as_slice),
                "{number} % {modulus}"
            );
        }
    }
}
