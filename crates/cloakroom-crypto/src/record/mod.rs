//! The record envelope: encrypts and decrypts one column of one row.

use std::mem;

use zeroize::Zeroizing;

use crate::primitives::{self, MessageKey, NONCE_BYTES, SALT_BYTES, TAG_BYTES};
use crate::{Error, Key, PolicyDigest, SealsRecords, Sensitive, fields, random};

const FORMAT: u8 = 1;
const ALGORITHM: u8 = 1;
const HEADER_BYTES: usize = 1 + 1 + 4 + SALT_BYTES + NONCE_BYTES;

/// Plaintext is padded to a multiple of this, which hides its exact length.
const BLOCK_BYTES: usize = 32;

/// The column and row of a sealed value, authenticated as associated data. It decrypts only in this context.
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

/// Encrypts `plaintext` under a key derived for this record.
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

/// Encrypts with the salt and nonce of `header`. Only test vectors may choose them.
pub(crate) fn seal_with<P: SealsRecords>(
    key: &Key<P>,
    header: &Header,
    context: &RecordContext<'_>,
    plaintext: &[u8],
) -> Result<Vec<u8>, Error> {
    let aad = context.aad(header.key_version)?;
    let padded = padded_length(plaintext.len());

    // Holds plaintext until the cipher has run, so it is zeroized on failure.
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

/// Decrypts an envelope that [`seal`] produced for the same context; anything else is [`Error::Integrity`].
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

/// The key version in the header. Not authenticated yet: use it only to look up the key.
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
        // A call to the generator costs as much as the cipher, so one call fills both.
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

/// The first byte of padding; zeros follow. Padding has at least this byte.
const PADDING_START: u8 = 0x80;

fn padded_length(length: usize) -> usize {
    (length / BLOCK_BYTES + 1) * BLOCK_BYTES
}

fn is_padded_length(length: usize) -> bool {
    length > 0 && length.is_multiple_of(BLOCK_BYTES)
}

/// The offset of the padding, if `padded` ends in canonical padding as [`seal`] writes it.
fn unpadded_length(padded: &[u8]) -> Option<usize> {
    let start = padded.iter().rposition(|byte| *byte != 0)?;
    let canonical = padded_length(start) == padded.len();
    (padded[start] == PADDING_START && canonical).then_some(start)
}

#[cfg(test)]
mod tests;
