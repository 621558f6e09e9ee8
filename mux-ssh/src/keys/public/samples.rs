//! Keys, fingerprints and signatures made by `ssh-keygen` of OpenSSH 9.2; the private halves are thrown away. The
//! signatures are those of `ssh-keygen -Y sign -n t` over a file that holds `data`.

use crate::algorithms::SignatureAlgorithm;

/// One key and one signature by it, in hexadecimal.
pub(super) struct Sample {
    pub(super) algorithm: SignatureAlgorithm,
    pub(super) fingerprint: &'static str,
    pub(super) blob: &'static str,
    pub(super) signature: &'static str,
}

pub(super) const SAMPLES: &[Sample] = &[
    Sample {
        algorithm: SignatureAlgorithm::Ed25519,
        fingerprint: "SHA256:uCSRKfdAs/gU2jyF4wPDgfpLuWZZ4qZvPGbyCZ2fBYs",
        blob: concat!(
            "0000000b7373682d6564323535313900000020ad501eaed81fe479d007b4a0c2fa59976fb517358d90f87bd0a267e1b9",
            "df5559",
        ),
        signature: concat!(
            "0000000b7373682d65643235353139000000400690ef00bc0006b3bf3ec4fc960edb949346765ccf136b54e8b516bb1d",
            "78b2db84b4e19ce85143b9154ba0d65aad3a137d87b135fe272a1e8c54609390b3690a",
        ),
    },
    Sample {
        algorithm: SignatureAlgorithm::EcdsaNistp256,
        fingerprint: "SHA256:FzgMnIRUTY1QJFW5QVKFJ9HTcCEpLdAtUXGbh11lWuA",
        blob: concat!(
            "0000001365636473612d736861322d6e69737470323536000000086e697374703235360000004104d8f12492176eff70",
            "6374c5448433895c9d33623df11ae0c1238a9f3b0c594080580c1d2d4bfc4bc62853276a8a369ff51748c550a5e4cb55",
            "67c2684a9e40527a",
        ),
        signature: concat!(
            "0000001365636473612d736861322d6e697374703235360000004a0000002100bc2d9788f3cc4d046d10bdf4e08d2e8f",
            "ced519e510f263ef62039c42ad5dbffa0000002100dcdfcbaf1ed27eb4bc30d443fb63aa783a69ab430ffe20e17e5b72",
            "6f4ee724a0",
        ),
    },
    Sample {
        algorithm: SignatureAlgorithm::EcdsaNistp384,
        fingerprint: "SHA256:qZiFHo0N15ofrxB6dmHYlOool4CAsLyY83m1zfNK0Sk",
        blob: concat!(
            "0000001365636473612d736861322d6e69737470333834000000086e69737470333834000000610436d3e3d96c0514d2",
            "a523734b401d56874d759b9b276771c580a8588d104d9bc48edb9df99ac67ecf9f2bcf8240924241124a03f83d0f7346",
            "4ad82155bcd25106f4b15531eb1d94753a1850a9f0f2498cc2fc5449ae4c86e63ddc66e4d26db196",
        ),
        signature: concat!(
            "0000001365636473612d736861322d6e6973747033383400000069000000301af6535393baa519b72e5274802eaf58a9",
            "c7e786d6e25d3215350cf9547c477695eb38fccd87af88029c5bd8950ddf1800000031009c3d6e48ab70560774a7b7b5",
            "231e85ded1457cf569f7b0f957babd036cd60a74b44295110b2c9ff97e90947bdfec4237",
        ),
    },
    Sample {
        algorithm: SignatureAlgorithm::EcdsaNistp521,
        fingerprint: "SHA256:p6oJlvvdugw57JwktVreIic3GoWUw/WmyKm5kEsEXYs",
        blob: concat!(
            "0000001365636473612d736861322d6e69737470353231000000086e69737470353231000000850401ecb43dbdaed68a",
            "a4eb7e62baa0f04cf67441f1e4de9e1d04005c56de8ba214d7ad33757af48bd7917bc2ea6f82816752ea1ae5c593428b",
            "66b95bb8739bbfa2fb950102996ab0294c6ac178cc0c3d9f143ced8b0c8e0bb1e2bf99241be85eab0c946d17319054d6",
            "9969beb4c22b81c8f760d3779e089ddb4be006b3071377d058bdf1ca",
        ),
        signature: concat!(
            "0000001365636473612d736861322d6e697374703532310000008c00000042008d99d8eb6e815caf1bd3e8838a00e22d",
            "fe8c6b3105d0f5c9f778f02a90748e7994b91b01c1f9cd7019da1ab96c3cc76f98ce98d5d4a66f256990084660b917ac",
            "5c0000004201a868590dec05d23d73004a25cece1692fe5061485f1d6fbb4998f178334ec415129a1ca828dd92421979",
            "8003bd525045697e8a95fc4b142158e485aed3f324fc0c",
        ),
    },
    Sample {
        algorithm: SignatureAlgorithm::RsaSha2_512,
        fingerprint: "SHA256:xJQ3HdWJOAz7CdIQAfLqUn6Ufl/CeLUB81oglXQ1+uw",
        blob: concat!(
            "000000077373682d727361000000030100010000010100d5a6b99e1cd1d8a5bd2cb7b47019026cf9a74f5ad9b409cc69",
            "de10825e2a0cf34c12cc9fb2421b5d9da15f175ed227a0f46869a6c63de0d97c25ba7231cebe4a02e96ee48f391e058a",
            "a89644a97adbc574d785d5314c08532a5749c6f4450e5af9e53c91587d5fc7d90f0e3ed21ff85f1e4a54778e53dd21da",
            "b52a637e3553874f3bb4f30222b0321c9616c98103183a52ae392048f3d256037388de0d4aeebff6010dcdff04be7534",
            "fdeeac8f2fcf711a3749e21009f445218ead87f6cac0ce69df50aae830102f1cdd0d56bcffc5d44d7411ece9829a189f",
            "0b295af7f9f107904c6188455e59b6cc2f641352ae611bb7906685f8eebbbca7bd7fa782b820af",
        ),
        signature: concat!(
            "0000000c7273612d736861322d35313200000100964a9149e1123aeb72916ef6c98f141a02f6c919874c13bae2014bcb",
            "b6bf175584218f3cc6db9c823922a9a7ffe54c90006698623a1cd041ea99ea4699dcafbe264b6cd18f6cba2deedad72b",
            "f8bae6c5b72ea15c08eec9cb150b41103a392113b0a12f936729f0ad27f4bdbd370cf1a415946a37c65a0dc417b448ed",
            "aae0b46fd06220bfe2cf776dacc8911acc66b7a7ab53b662c37accac345be2850de4ff8a214c4c5308e291a2448b03c0",
            "001aca17712a1cebcb0cb523c4e123d4aab7ce4cc57044d6e6c249934f98c866f0e48fc35f996ef19d24a893756419bd",
            "2ba8ee050aa094daa2fca72e964336476beb2ee2b183bcf1e8a5bfddcba8781eca143606",
        ),
    },
];

/// Security keys and signatures by them over [`SIGNED_BY_SECURITY_KEYS`], as in OpenSSH's own tests. Their private halves
/// leave no device, so that there is no way to make some here.
pub(super) const SECURITY_KEYS: &[Sample] = &[
    Sample {
        algorithm: SignatureAlgorithm::SkEd25519,
        fingerprint: "SHA256:pbI9wlyrFSsUbp+GTiIAOqNMvoajbF2tHsPMECyrMYU",
        blob: concat!(
            "0000001a736b2d7373682d65643235353139406f70656e7373682e636f6d000000209b1a0d85d062bb9ce9b8a50980c8",
            "2b861239e1bece6ad13b633db74dffffb2c7000000047373683a",
        ),
        signature: concat!(
            "0000001a736b2d7373682d65643235353139406f70656e7373682e636f6d0000004022fbb7938d6ffe2d0d8cfac083f8",
            "a16d1f59fb545149a27fd2645b31383c95f1c5939452a3eb5ed8b3552be5357ab9a117421724f2b040da84081d33c034",
            "b20f0112345678",
        ),
    },
    Sample {
        algorithm: SignatureAlgorithm::SkEcdsaNistp256,
        fingerprint: "SHA256:/ALxJUlmDPE0gxeL1nZip4oXm1VG1qmR2xL5iUzZD1A",
        blob: concat!(
            "00000022736b2d65636473612d736861322d6e69737470323536406f70656e7373682e636f6d000000086e6973747032",
            "35360000004104a0d56b98d1713e55ec4eb2b26c158bb1c95a1ee9e43fa179b2cf6a441ca670f66a3259e86ff85b3ba1",
            "9585a7725598eb726ca43a76f7d46586ae404fcebf83c0000000047373683a",
        ),
        signature: concat!(
            "00000022736b2d65636473612d736861322d6e69737470323536406f70656e7373682e636f6d00000048000000207a21",
            "1b0cb2f22293df3c1dd53600f55fc8a28ee1ff7cc2254b72abf42282dfc7000000206ce2753c2aec3fe415aed78dca7f",
            "2a475b22ce0c7d0a5f016ff439c89a8e5a730112345678",
        ),
    },
];

/// Namespace and content of what they signed.
pub(super) const SIGNED_BY_SECURITY_KEYS: (&str, &str) = ("unittest", "This is a test, this is only a test");
