//! Published test vectors.

use super::*;

fn bytes(text: &str) -> Vec<u8> {
    hex::decode(text).unwrap()
}

#[test]
fn hkdf_matches_rfc_5869() {
    // RFC 5869, A.1 to A.3; our keys are the first block of each output.
    let up = |from: u8, to: u8| (from..=to).collect::<Vec<u8>>();
    let cases = [
        (
            vec![0x0b; 22],
            up(0x00, 0x0c),
            up(0xf0, 0xf9),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf",
        ),
        (
            up(0x00, 0x4f),
            up(0x60, 0xaf),
            up(0xb0, 0xff),
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c",
        ),
        (
            vec![0x0b; 22],
            vec![],
            vec![],
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d",
        ),
    ];
    for (secret, salt, info, key) in cases {
        assert_eq!(hex::encode(*derive(&secret, &salt, &info)), key);
    }
}

#[test]
fn hmac_matches_rfc_4231() {
    // RFC 4231, cases 1, 2, 3, 4, 6 and 7 (case 5 truncates).
    let long = "This is a test using a larger than block-size key and a larger than \
                block-size data. The key needs to be hashed before being used by the HMAC \
                algorithm.";
    let cases = [
        (
            vec![0x0b; 20],
            b"Hi There".to_vec(),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
        ),
        (
            b"Jefe".to_vec(),
            b"what do ya want for nothing?".to_vec(),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            vec![0xaa; 20],
            vec![0xdd; 50],
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
        ),
        (
            (1..=25).collect(),
            vec![0xcd; 50],
            "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
        ),
        (
            vec![0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First".to_vec(),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        ),
        (
            vec![0xaa; 131],
            long.as_bytes().to_vec(),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
        ),
    ];
    for (key, message, digest) in cases {
        assert_eq!(hex::encode(hmac(&key, &message)), digest);
    }
}

#[test]
fn concat_kdf_matches_rfc_7518() {
    // RFC 7518, appendix C: the shared secret of Alice and Bob, for 128 bits.
    let secret = [
        158, 86, 217, 29, 129, 113, 53, 211, 114, 131, 66, 131, 191, 132, 38, 156, 251, 49, 110,
        163, 218, 128, 106, 72, 246, 218, 167, 121, 140, 254, 144, 196,
    ];
    let mut key = [0; 16];

    concat_kdf(&secret, [b"A128GCM", b"Alice", b"Bob"], 128, &mut key).unwrap();

    let expected = [
        86, 170, 141, 234, 248, 35, 109, 32, 92, 34, 40, 205, 113, 167, 16, 26,
    ];
    assert_eq!(key, expected);
}

#[test]
fn aes_gcm_matches_the_published_test_cases() {
    // McGrew and Viega, "The Galois/Counter Mode of Operation", cases 13, 14 and 16.
    let key = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308";
    let cases = [
        (
            &*"00".repeat(32),
            &*"00".repeat(12),
            "",
            "",
            "",
            "530f8afbc74536b9a963b4f1c4cb738b",
        ),
        (
            &*"00".repeat(32),
            &*"00".repeat(12),
            "",
            &*"00".repeat(16),
            "cea7403d4d606b6e074ec5d3baf39d18",
            "d0d1c8a799996bf0265b98b5d48ab919",
        ),
        (
            key,
            "cafebabefacedbaddecaf888",
            "feedfacedeadbeeffeedfacedeadbeefabaddad2",
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
             1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa\
             8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
            "76fc6ece0f4e1768cddf8853bb2d551b",
        ),
    ];
    for (key, nonce, aad, plaintext, ciphertext, tag) in cases {
        let message_key = || {
            let key = bytes(key).try_into().unwrap();
            MessageKey::new(&key, bytes(nonce).try_into().unwrap()).unwrap()
        };
        let mut in_out = bytes(plaintext);
        let sealed_tag = message_key().seal(&bytes(aad), &mut in_out).unwrap();
        assert_eq!(hex::encode(&in_out), ciphertext);
        assert_eq!(hex::encode(sealed_tag.as_ref()), tag);

        let mut opened = vec![0; in_out.len()];
        let tag = bytes(tag).try_into().unwrap();
        message_key()
            .open(&bytes(aad), &in_out, &tag, &mut opened)
            .unwrap();
        assert_eq!(hex::encode(opened), plaintext);
    }
}

#[test]
fn constant_time_comparison_covers_every_byte() {
    let secret = [7; 40];
    assert!(equal_in_constant_time(&secret, &secret.clone()));
    for position in 0..secret.len() {
        let mut other = secret;
        other[position] ^= 1;
        assert!(!equal_in_constant_time(&secret, &other), "{position}");
    }
    assert!(!equal_in_constant_time(&secret, &secret[..39]));
}
