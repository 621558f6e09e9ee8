//! Entry points for fuzz targets: key files without their base64, which mutations would only break.

use super::armour::Label;
use super::pbes2::Pbes2;
use super::pkcs;

/// DER under every label that holds it.
pub fn key_der(data: &[u8]) {
    for label in [Label::Pkcs1, Label::Sec1, Label::Pkcs8] {
        let public = pkcs::public(label, data);
        if let Ok(key) = pkcs::private(label, data) {
            assert_eq!(public.as_ref(), Ok(key.public()));
            for &algorithm in key.public().key_type().signature_algorithms() {
                let _ = key.sign(algorithm, b"data");
            }
        }
    }
    // Opening it takes its iterations, which is no decoding.
    let _ = Pbes2::parse(data);
}
