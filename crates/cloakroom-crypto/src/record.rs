//! The record envelope: sealing and opening one column of one row.

use std::mem;

use zeroize::Zeroizing;

use crate::primitives::{self, MessageKey, NONCE_BYTES, SALT_BYTES, TAG_BYTES};
use crate::{Error, Key, PolicyDigest, SealsRecords, Sensitive, fields, random};

const FORMAT: u8 = 1;
const ALGORITHM: u8 = 1;
const HEADER_BYTES: usize = 1 + 1 + 4 + SALT_BYTES + NONCE_BYTES;

/// Plaintext grows to a multiple of this, which hides its exact length.
const BLOCK_BYTES: usize = 32;

/// Where a sealed value belongs. It opens there and nowhere else.
#[derive(Debug, Clone, Copy)]
pub struct RecordContext<'a> {
    pub environment: &'a str,
    pub tenant: [u8; 16],
    pub kind: &'a str,
    pub record_id: &'a [u8],
    pub column: &'a str,
    pub row_version: u32,
    pub policy: PolicyDigest,
}

impl RecordContext<'_> {
    fn aad(&self, key_version: [u8; 4]) -> Result<Vec<u8>, Error> {
        fields::length_prefixed(&[
            b"vault.v1",
            self.environment.as_bytes(),
            &self.tenant,
            self.kind.as_bytes(),
            self.record_id,
            self.column.as_bytes(),
            &[FORMAT],
            &[ALGORITHM],
            &key_version,
            &self.row_version.to_be_bytes(),
            self.policy.as_bytes(),
        ])
    }
}

/// Seals `plaintext` under a key derived for this one record.
///
/// ```compile_fail,E0277
/// use cloakroom_crypto::{Control, Key, RecordContext, seal};
/// fn seal_with_the_wrong_key(context: &RecordContext<'_>) {
///     let _ = seal(&Key::<Control>::generate(), 1, context, b"plaintext");
/// }
/// ```
pub fn seal<P: SealsRecords>(
    key: &Key<P>,
    key_version: u32,
    context: &RecordContext<'_>,
    plaintext: &[u8],
) -> Result<Vec<u8>, Error> {
    seal_with(key, &Header::random(key_version), context, plaintext)
}

/// Seals with a given salt and nonce, which only vectors may choose.
pub(crate) fn seal_with<P: SealsRecords>(
    key: &Key<P>,
    header: &Header,
    context: &RecordContext<'_>,
    plaintext: &[u8],
) -> Result<Vec<u8>, Error> {
    let aad = context.aad(header.key_version)?;
    let padded = padded_length(plaintext.len());

    // Holds plaintext until the cipher has run, so it must be wiped if that fails.
    let mut envelope = Zeroizing::new(Vec::with_capacity(HEADER_BYTES + padded + TAG_BYTES));
    envelope.extend_from_slice(&[FORMAT, ALGORITHM]);
    envelope.extend_from_slice(&header.key_version);
    envelope.extend_from_slice(&header.salt);
    envelope.extend_from_slice(&header.nonce);
    envelope.extend_from_slice(plaintext);
    envelope.push(PADDING_START);
    envelope.resize(HEADER_BYTES + padded, 0);

    let tag = record_key(key, header)
        .and_then(|key| key.seal(&aad, &mut envelope[HEADER_BYTES..]))
        .map_err(|_| Error::Provider)?;
    envelope.extend_from_slice(tag.as_ref());
    Ok(mem::take(&mut envelope))
}

/// Opens what [`seal`] made for the same context; anything else is [`Error::Integrity`].
pub fn open<P: SealsRecords>(
    key: &Key<P>,
    context: &RecordContext<'_>,
    envelope: &[u8],
) -> Result<Sensitive<Vec<u8>>, Error> {
    let header = Header::parse(envelope)?;
    let (ciphertext, tag) = envelope[HEADER_BYTES..]
        .split_last_chunk::<TAG_BYTES>()
        .filter(|(ciphertext, _)| is_padded_length(ciphertext.len()))
        .ok_or(Error::Integrity)?;
    let aad = context
        .aad(header.key_version)
        .map_err(|_| Error::Integrity)?;

    let mut plaintext = Sensitive::new(vec![0; ciphertext.len()]);
    record_key(key, &header)
        .and_then(|key| key.open(&aad, ciphertext, tag, plaintext.expose_mut()))
        .map_err(|_| Error::Integrity)?;
    let length = unpadded_length(plaintext.expose()).ok_or(Error::Integrity)?;
    plaintext.expose_mut().truncate(length);
    Ok(plaintext)
}

/// Which version of the key sealed this; not yet authenticated, only good for finding the key.
pub fn sealed_key_version(envelope: &[u8]) -> Result<u32, Error> {
    Header::parse(envelope).map(|header| u32::from_be_bytes(header.key_version))
}

pub(crate) struct Header {
    pub(crate) key_version: [u8; 4],
    pub(crate) salt: [u8; SALT_BYTES],
    pub(crate) nonce: [u8; NONCE_BYTES],
}

impl Header {
    fn random(key_version: u32) -> Self {
        let mut header = Self {
            key_version: key_version.to_be_bytes(),
            salt: [0; SALT_BYTES],
            nonce: [0; NONCE_BYTES],
        };
        // Asking the generator costs as much as the cipher, so it is asked once.
        let random = random::random_bytes::<{ SALT_BYTES + NONCE_BYTES }>();
        header.salt.copy_from_slice(&random[..SALT_BYTES]);
        header.nonce.copy_from_slice(&random[SALT_BYTES..]);
        header
    }

    fn parse(envelope: &[u8]) -> Result<Self, Error> {
        let fields = || {
            let (&[format, algorithm], rest) = envelope.split_first_chunk()?;
            let (&key_version, rest) = rest.split_first_chunk()?;
            let (&salt, rest) = rest.split_first_chunk()?;
            let (&nonce, _) = rest.split_first_chunk()?;
            let header = Self {
                key_version,
                salt,
                nonce,
            };
            (format == FORMAT && algorithm == ALGORITHM).then_some(header)
        };
        fields().ok_or(Error::Integrity)
    }
}

fn record_key<P: SealsRecords>(
    key: &Key<P>,
    header: &Header,
) -> Result<MessageKey, aws_lc_rs::error::Unspecified> {
    let record_key = primitives::derive(key.secret(), &header.salt, b"record.v1");
    MessageKey::new(&record_key, header.nonce)
}

/// The first byte of padding; zeros follow. There is always at least this byte.
const PADDING_START: u8 = 0x80;

fn padded_length(length: usize) -> usize {
    (length / BLOCK_BYTES + 1) * BLOCK_BYTES
}

fn is_padded_length(length: usize) -> bool {
    length > 0 && length.is_multiple_of(BLOCK_BYTES)
}

/// Where the padding starts, if these bytes end in one that [`seal`] would have written.
fn unpadded_length(padded: &[u8]) -> Option<usize> {
    let start = padded.iter().rposition(|byte| *byte != 0)?;
    let canonical = padded_length(start) == padded.len();
    (padded[start] == PADDING_START && canonical).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Data;

    fn context() -> RecordContext<'static> {
        RecordContext {
            environment: "test",
            tenant: [1; 16],
            kind: "token",
            record_id: b"id",
            column: "data",
            row_version: 1,
            policy: PolicyDigest::new("card", &["/a/"], None),
        }
    }

    #[test]
    fn padding_is_taken_off_only_where_it_was_put_on() {
        let block = |bytes: &[u8], length| {
            let mut block = bytes.to_vec();
            block.resize(length, 0);
            block
        };
        let cases = [
            (block(&[0x80], 32), Some(0)),
            (block(&[1, 0x80], 32), Some(1)),
            (block(&[0x80, 0x80], 32), Some(1)),
            (block(&[], 32), None),
            (block(&[1], 32), None),
            (block(&[1, 0x80], 64), None),
            (block(&[0; 32], 32), None),
        ];
        for (padded, expected) in cases {
            assert_eq!(unpadded_length(&padded), expected, "{padded:?}");
        }
    }

    #[test]
    fn the_envelope_names_its_key_version() {
        let key = Key::<Data>::generate();
        let sealed = seal(&key, 0x0102_0304, &context(), b"x").unwrap();

        assert_eq!(sealed_key_version(&sealed), Ok(0x0102_0304));
        assert_eq!(sealed[..6], [1, 1, 1, 2, 3, 4]);
    }

    #[test]
    fn every_shorter_or_longer_envelope_is_refused() {
        let key = Key::<Data>::generate();
        let sealed = seal(&key, 1, &context(), &[7; 70]).unwrap();

        for length in 0..sealed.len() {
            let result = open(&key, &context(), &sealed[..length]);
            assert_eq!(result.err(), Some(Error::Integrity), "{length}");
        }
        for extra in 1..=64 {
            let longer = [&sealed[..], &vec![0; extra]].concat();
            let result = open(&key, &context(), &longer);
            assert_eq!(result.err(), Some(Error::Integrity), "{extra}");
        }
        assert_eq!(sealed_key_version(&sealed[..33]), Err(Error::Integrity));
    }

    #[test]
    fn an_unknown_format_or_algorithm_is_refused() {
        let key = Key::<Data>::generate();
        let sealed = seal(&key, 1, &context(), b"x").unwrap();

        for (position, value) in (0..2).flat_map(|p| [0, 2, 255].map(|v| (p, v))) {
            let mut other = sealed.clone();
            other[position] = value;
            assert_eq!(sealed_key_version(&other), Err(Error::Integrity));
            assert_eq!(open(&key, &context(), &other).err(), Some(Error::Integrity));
        }
    }

    #[test]
    fn equal_plaintexts_look_different() {
        let key = Key::<Data>::generate();
        let seal = || seal(&key, 1, &context(), b"same").unwrap();
        assert_ne!(seal()[6..], seal()[6..]);
    }

    #[test]
    fn a_context_that_cannot_be_encoded_is_refused() {
        let key = Key::<Data>::generate();
        let sealed = seal(&key, 1, &context(), b"x").unwrap();
        let record_id = vec![0; 65_536];
        let context = RecordContext {
            record_id: &record_id,
            ..context()
        };

        assert_eq!(seal(&key, 1, &context, b"x"), Err(Error::ContextTooLong));
        assert_eq!(open(&key, &context, &sealed).err(), Some(Error::Integrity));
    }
}
