//! The key exchange methods by themselves: which secrets they come to, how those are written, what they refuse.

use aws_lc_rs::agreement::{self, PrivateKey};
use aws_lc_rs::digest;

use crate::Violation;
use crate::algorithms::Kex;
use crate::transport::derive::SharedSecret;
use crate::transport::method::{self, CURVE25519, Curve, NISTP256, NISTP384, NISTP521};

/// A key of ours, a public value of the peer, and the secret of both as RFC 4253 §8 writes it. All made by another
/// library, from private keys that were tried until their secret began as said.
struct Vector {
    curve: &'static Curve,
    secret: &'static str,
    private: &'static str,
    public: &'static str,
    mpint: &'static str,
}

#[rustfmt::skip]
const VECTORS: [Vector; 17] = [
    Vector {
        curve: &CURVE25519,
        secret: "a zero byte",
        private: "0e17daca5f3e175f448bacace3bc0da47d0655a74c8dd0dc497a3afbdad95f1f",
        public: "07a37cbc142093c8b755dc1b10e86cb426374ad16aa853ed0bdfc0b2b86d1c7c",
        mpint: "0000001f1041ff3a67d12dba05c4f1306bba9f6403847245907207cbaaac6300cf5600",
    },
    Vector {
        curve: &CURVE25519,
        secret: "a zero byte, high bit",
        private: "a73b320dc0d3a57c03f897eb28ca91e623c5ee635db59476ba3178c90b94019f",
        public: "07a37cbc142093c8b755dc1b10e86cb426374ad16aa853ed0bdfc0b2b86d1c7c",
        mpint: "0000002000ff37daf61a33d27ef22d44a6b302d99e27f9e4facc06539c81ad9ca3d1502a",
    },
    Vector {
        curve: &CURVE25519,
        secret: "high bit",
        private: "d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35",
        public: "07a37cbc142093c8b755dc1b10e86cb426374ad16aa853ed0bdfc0b2b86d1c7c",
        mpint: "00000021008dcf579375e75711672a5b46bcc1af75e086a739cb526266399ed184df96f054",
    },
    Vector {
        curve: &CURVE25519,
        secret: "plain",
        private: "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b",
        public: "07a37cbc142093c8b755dc1b10e86cb426374ad16aa853ed0bdfc0b2b86d1c7c",
        mpint: "000000204f491b3e6d199632191fe1f5160aec21b3ab5659456a6c5e0fec0f05f6fede19",
    },
    Vector {
        curve: &NISTP256,
        secret: "a zero byte",
        private: "5e108bc2842d7716815913af0b3d5cb59563fa9116f71b9a17b37d6d445fe778",
        public: "049258531d978867a4d865753c2a4b71eedd4c4e9116c939c80c37b2baf7bbdc4315e7b63a1f8558d13887ba72ac68223ce3b9ce28bd4e9ff5520fb6fcc790c6fe",
        mpint: "0000001f5eca38518c326e844a39b0c7ba1d6ca6f321008220f8b4967e201953922782",
    },
    Vector {
        curve: &NISTP256,
        secret: "a zero byte, high bit",
        private: "1917780270d9770607a6a0d8468b7139cf8be0e2d84f2c2d5f531cb26c23315b",
        public: "049258531d978867a4d865753c2a4b71eedd4c4e9116c939c80c37b2baf7bbdc4315e7b63a1f8558d13887ba72ac68223ce3b9ce28bd4e9ff5520fb6fcc790c6fe",
        mpint: "0000002000afb2a6b3328f067f7729f47eeeec613ed2e0e263b4aa0ed499c925ed150cb6",
    },
    Vector {
        curve: &NISTP256,
        secret: "high bit",
        private: "4dff4ea340f0a823f15d3f4f01ab62eae0e5da579ccb851f8db9dfe84c58b2b3",
        public: "049258531d978867a4d865753c2a4b71eedd4c4e9116c939c80c37b2baf7bbdc4315e7b63a1f8558d13887ba72ac68223ce3b9ce28bd4e9ff5520fb6fcc790c6fe",
        mpint: "0000002100af8b53a6d47b73c58232bf084940362600cc9b9c9897ba7ee109529883b7a7bc",
    },
    Vector {
        curve: &NISTP256,
        secret: "plain",
        private: "2321d8b405e3ef2604959847b36d171eebebc4a8941dc70a4784935a4fca5d58",
        public: "049258531d978867a4d865753c2a4b71eedd4c4e9116c939c80c37b2baf7bbdc4315e7b63a1f8558d13887ba72ac68223ce3b9ce28bd4e9ff5520fb6fcc790c6fe",
        mpint: "00000020154f583cb0c333cf44181b46990ad0b55dfea715378dab4a65b08cc8a9b780dc",
    },
    Vector {
        curve: &NISTP384,
        secret: "a zero byte",
        private: "312a7601716ba96b1451fc31c3849aac8b77e163bc3e0c6f42a5b40a28816b4785e090e1a891e35843b104cdc98a6d6b",
        public: "044916592ee9fd4773b451621a88fa0a09eaf240a61bb11b59dec4a23581728eca0e4b949c8c10c3275e17d4d8b3bd0b40faf5252990ff350bdb1df521986003ce3c3fc3a4da021263e2715a7a1cb5586177d3351832b638ab58ae18ace7ab48dc",
        mpint: "0000002f6a8891aa6cf6078d1edc237656c61d7502aaf70b40c4ef8a67dcd9eb19bae67bad80f0f14fc35b6856061a6f585254",
    },
    Vector {
        curve: &NISTP384,
        secret: "a zero byte, high bit",
        private: "37953ae09943b8bec668936bd8bda735a8262a1cbe3b6cb372d755f708c380e33b4acb0724dafb7e531bdcf65c7da688",
        public: "044916592ee9fd4773b451621a88fa0a09eaf240a61bb11b59dec4a23581728eca0e4b949c8c10c3275e17d4d8b3bd0b40faf5252990ff350bdb1df521986003ce3c3fc3a4da021263e2715a7a1cb5586177d3351832b638ab58ae18ace7ab48dc",
        mpint: "0000003000b4a49139fd9f9787dd80aa146fabef4d40c64571b047c5701679c84e86db15ef374ab260ba109e0b01960ce9f08786",
    },
    Vector {
        curve: &NISTP384,
        secret: "high bit",
        private: "4dff4ea340f0a823f15d3f4f01ab62eae0e5da579ccb851f8db9dfe84c58b2b37b89903a740e1ee172da793a6e79d560",
        public: "044916592ee9fd4773b451621a88fa0a09eaf240a61bb11b59dec4a23581728eca0e4b949c8c10c3275e17d4d8b3bd0b40faf5252990ff350bdb1df521986003ce3c3fc3a4da021263e2715a7a1cb5586177d3351832b638ab58ae18ace7ab48dc",
        mpint: "00000031008ccf1ea396eb403d7bc993c630359d3beb392d9304f15d27738ce015f78d124116c20273db9c583f7aa5a4c264ffb7b2",
    },
    Vector {
        curve: &NISTP384,
        secret: "plain",
        private: "40b244112641dd78dd4f93b6c9190dd46e0099194d5a44257b7efad6ef9ff4683da1eda0244448cb343aa688f5d3efd7",
        public: "044916592ee9fd4773b451621a88fa0a09eaf240a61bb11b59dec4a23581728eca0e4b949c8c10c3275e17d4d8b3bd0b40faf5252990ff350bdb1df521986003ce3c3fc3a4da021263e2715a7a1cb5586177d3351832b638ab58ae18ace7ab48dc",
        mpint: "000000307d19e7d4b28b5ed0708e721e5d4f4401286afa21e77cb0e31053d8838236e793cbeeeb43cee555267c793422275ab926",
    },
    Vector {
        curve: &NISTP521,
        secret: "a zero byte",
        private: "00003c11e4f316c956a27655902dc1a19b925b8887d59eff791eea63edc8a05454ec594d5eb0f40ae151df87acd6e101761ecc5bb0d3b829bf3a85f5432493b22f37",
        public: "040028490e161cc8ed10d240f0100f927cb83ca42adeefe31fb4e4cbb2e52836e71b461a287a7278d55099c7185d8cfc26ed86d76268e3f8627b059e2ebcf163f6dc1c0020b79d4492ac21e85a8fe5cabeda615c944e5c7d0cd4763d71b2d5612a619e94799e25129d3c5b88d14eb642d339a4b949db75233d6e818d18bf1f84f2c369ac5c",
        mpint: "0000004157100dda381d177d9db73895907d9f3626c249adec533ee2d2c8df599322e8fe6b02b28fefb2e4c7d265ab83a179541de8d163ec4ffc8a639d2477f3f0c24579f2",
    },
    Vector {
        curve: &NISTP521,
        secret: "a zero byte, high bit",
        private: "00003bafbf08882a2d10133093a1b8433f50563b93c14acd05b79028eb1d12799027241450980651994501423a66c276ae26c43b739bc65c4e16b10c3af6c202aebb",
        public: "040028490e161cc8ed10d240f0100f927cb83ca42adeefe31fb4e4cbb2e52836e71b461a287a7278d55099c7185d8cfc26ed86d76268e3f8627b059e2ebcf163f6dc1c0020b79d4492ac21e85a8fe5cabeda615c944e5c7d0cd4763d71b2d5612a619e94799e25129d3c5b88d14eb642d339a4b949db75233d6e818d18bf1f84f2c369ac5c",
        mpint: "000000420097fa1346aa1862188d8b5eb9009c6350417343572bb72777a5b880a6ba8565cac4cb9450d8ed7f35b200b4bfdc871ecb4c1c561379104a123d66745521f10cf41e",
    },
    Vector {
        curve: &NISTP521,
        secret: "one bit in the first byte",
        private: "00004dff4ea340f0a823f15d3f4f01ab62eae0e5da579ccb851f8db9dfe84c58b2b37b89903a740e1ee172da793a6e79d560e5f7f9bd058a12a280433ed6fa46510a",
        public: "040028490e161cc8ed10d240f0100f927cb83ca42adeefe31fb4e4cbb2e52836e71b461a287a7278d55099c7185d8cfc26ed86d76268e3f8627b059e2ebcf163f6dc1c0020b79d4492ac21e85a8fe5cabeda615c944e5c7d0cd4763d71b2d5612a619e94799e25129d3c5b88d14eb642d339a4b949db75233d6e818d18bf1f84f2c369ac5c",
        mpint: "00000042015f1690ca79ec94bf093876add09172302d41cdb103f7b736bacbd76c627172522ccce047ffaf7fd6fe871c822a953eed399c316afd0e61941d5a426fc10f75f254",
    },
    Vector {
        curve: &NISTP521,
        secret: "two zero bytes",
        private: "0000dfa5d1cefd0efdf5f52b765120da72c5706eb1dd113234cfdf31e31f9cd0283366f6a8f7230f29ea42d83acfe02743dc2504cda07c30f6e84bf9b1ca35966266",
        public: "040028490e161cc8ed10d240f0100f927cb83ca42adeefe31fb4e4cbb2e52836e71b461a287a7278d55099c7185d8cfc26ed86d76268e3f8627b059e2ebcf163f6dc1c0020b79d4492ac21e85a8fe5cabeda615c944e5c7d0cd4763d71b2d5612a619e94799e25129d3c5b88d14eb642d339a4b949db75233d6e818d18bf1f84f2c369ac5c",
        mpint: "0000003f02bf060864d3b87f312ac2d64e3b3444e0b204c5e4242a8a1a8d5085a1959adb99f399201cda89f627076bb05d9f4d4d053a43855d6344a3d8e597e4005b99",
    },
    Vector {
        curve: &NISTP521,
        secret: "two zero bytes, high bit",
        private: "00003d6a2505152c83a8134907c2174883a873ba90d66e982f05a36a89e49903de62d1f2ecd80c1f0d42cdf25a5763b4016769bf5198cfac121841cbd8d6d6c56052",
        public: "040028490e161cc8ed10d240f0100f927cb83ca42adeefe31fb4e4cbb2e52836e71b461a287a7278d55099c7185d8cfc26ed86d76268e3f8627b059e2ebcf163f6dc1c0020b79d4492ac21e85a8fe5cabeda615c944e5c7d0cd4763d71b2d5612a619e94799e25129d3c5b88d14eb642d339a4b949db75233d6e818d18bf1f84f2c369ac5c",
        mpint: "00000041009889110a86f93bbc58065a711b47d04ab0d01b76557756dab74e6d04f82791eed4220f858e33f4c1bb82903f863c764745322098d8b544fd1ce8d72662dbdbd7",
    },
];

/// A post-quantum secret whose hash, together with the classical secret of the first vector, begins as said: hash,
/// beginning, secret, the result as RFC 4251 §5 writes a string.
#[rustfmt::skip]
const HYBRIDS: [(&digest::Algorithm, &str, &str, &str); 6] = [
    (&digest::SHA256, "a zero byte", "004ab4264254cd1132b3158fa4acbf084b09474eff8eb02acb626d5e9113715d", "00000020002d32a86422f84284f86402a75875a9ec7d93b6ec867408e69b83ae8c758af1"),
    (&digest::SHA256, "a zero byte, high bit", "00e9de7ba2eb910684aef1e62b64c71be0f270c3d0796f1cfffd781cdde6747e", "0000002000a9167a819513a17a5e2eec0bc0b666bfd453380467a16d5e74889f68c7eb23"),
    (&digest::SHA256, "high bit", "007a7b92f6155f6d158c27ae59d6e4c8213e7aa0d9e7d0476b243ce7b87a4342", "00000020dc777faca282f35d4196ab829b98eb87ec8e390f5cce4e62090e2cb6431e772b"),
    (&digest::SHA512, "a zero byte", "002cf47ec9ad3d047a10f39c1c5c6d76aa7917d3607edd0a119bba07973bcf0b", "00000040002a74d2c0de575e2774be53c94019705f9cb08f0f8d5a9ff336b119023da89fb9a7356e5748217172100c25a756c9580e5589cd0cafcf63d282bf685a181c2d"),
    (&digest::SHA512, "a zero byte, high bit", "003fac3cb55122e40a324996a1dbad2f908c25bccbb652a4907df67ebf2fce69", "0000004000d9e6ce8c2065695e83993de433be814c176c24c9271bc1c50498915db4c0cd3b3f1d261b5fec6393f0115b26511a5d5016376f4c2cf94ed20fb9166b76bb39"),
    (&digest::SHA512, "high bit", "0051b9c21af50640ff6fa084c7f7b7866b06a52da2c40da2c441bd98d02e8009", "00000040cb0735b3e37e5dd3fec3643ba4c9029f094d2d40e23e5ea67ce96480bf7de4f66afcd1176dafc06025c896dd354e89fc1009c15ea5e2ddf3e3dc67cb0464e463"),
];

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digit).collect()
}

fn private(vector: &Vector) -> PrivateKey {
    PrivateKey::from_private_key(vector.curve.agreement(), &bytes(vector.private)).unwrap()
}

#[test]
fn a_secret_is_written_right_however_it_begins() {
    for vector in &VECTORS {
        let secret = method::agree(
            &private(vector),
            vector.curve,
            &bytes(vector.public),
            SharedSecret::mpint,
        );
        assert_eq!(
            secret.unwrap().encoded_bytes(),
            bytes(vector.mpint),
            "{} with {} bytes",
            vector.secret,
            vector.private.len() / 2
        );
    }
}

#[test]
fn a_hybrid_keeps_every_zero_of_both_secrets_and_of_their_hash() {
    let classical = &VECTORS[0];
    assert_eq!(classical.secret, "a zero byte");
    for (hash, begins, secret, expected) in HYBRIDS {
        let both = method::hybrid(
            hash,
            &bytes(secret),
            &private(classical),
            &bytes(classical.public),
        );
        assert_eq!(both.unwrap().encoded_bytes(), bytes(expected), "{begins}");
    }
}

#[test]
fn every_method_comes_to_the_same_secret_on_both_sides() {
    for &kex in Kex::ALL {
        let (offer, public) = method::Offer::new(kex).unwrap();
        let (answer, ours) = method::respond(kex, &public).unwrap();
        assert!(offer.finish(&answer).unwrap() == ours, "{kex:?}");
    }
}

#[test]
fn a_secret_is_a_number_or_a_string_as_its_method_says() {
    assert!(SharedSecret::mpint(&[0, 0, 0x12, 0x34]) == SharedSecret::mpint(&[0x12, 0x34]));
    assert_eq!(
        SharedSecret::mpint(&[0, 0x12]).encoded_bytes(),
        [0, 0, 0, 1, 0x12]
    );
    assert_eq!(
        SharedSecret::mpint(&[0, 0x92]).encoded_bytes(),
        [0, 0, 0, 2, 0, 0x92]
    );
    assert_eq!(
        SharedSecret::string(&[0, 0x92]).encoded_bytes(),
        [0, 0, 0, 2, 0, 0x92]
    );
    assert_eq!(
        SharedSecret::string(&[0, 0x12]).encoded_bytes(),
        [0, 0, 0, 2, 0, 0x12]
    );
}

#[test]
fn public_values_of_the_wrong_length_or_of_small_order_are_refused() {
    for &kex in Kex::ALL {
        let (_, public) = method::Offer::new(kex).unwrap();
        let (answer, _) = method::respond(kex, &public).unwrap();
        for bad in [
            &answer[..answer.len() - 1],
            &[&answer[..], &[0]].concat(),
            &[],
            &vec![0; answer.len()],
        ] {
            let (offer, _) = method::Offer::new(kex).unwrap();
            let result = offer.finish(bad).err();
            assert_eq!(result, Some(Violation::KexValue.into()), "client, {kex:?}");
        }
        for bad in [
            &public[..public.len() - 1],
            &[&public[..], &[0]].concat(),
            &[],
            &vec![0; public.len()],
        ] {
            let result = method::respond(kex, bad).err();
            assert_eq!(result, Some(Violation::KexValue.into()), "server, {kex:?}");
        }
    }
}

#[test]
fn a_point_in_another_form_or_off_its_curve_is_refused() {
    for vector in VECTORS
        .iter()
        .filter(|vector| vector.curve.agreement() != &agreement::X25519)
    {
        let good = bytes(vector.public);
        let coordinate = good.len() / 2;
        let mut off_the_curve = good.clone();
        *off_the_curve.last_mut().unwrap() ^= 1;
        let mut hybrid_form = good.clone();
        hybrid_form[0] = 6 | (good[good.len() - 1] & 1);
        let mut beyond_the_field = good.clone();
        beyond_the_field[1..=coordinate].fill(0xff);
        for bad in [
            off_the_curve,
            hybrid_form,
            beyond_the_field,
            // A compressed point, and the point at infinity.
            [&[2 | (good[good.len() - 1] & 1)], &good[1..=coordinate]].concat(),
            vec![0],
        ] {
            let result = method::agree(&private(vector), vector.curve, &bad, SharedSecret::mpint);
            assert_eq!(result.err(), Some(Violation::KexValue.into()), "{bad:x?}");
        }
    }
}
