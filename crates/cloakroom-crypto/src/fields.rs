//! Encodes associated data as length-prefixed fields, so that no two lists collide.

use crate::Error;

/// Encodes each field as a big-endian u16 length and its bytes.
pub(crate) fn length_prefixed(fields: &[&[u8]]) -> Result<Vec<u8>, Error> {
    let total = fields.iter().map(|field| 2 + field.len()).sum();
    let mut bytes = Vec::with_capacity(total);
    for field in fields {
        let length = u16::try_from(field.len()).map_err(|_| Error::ContextTooLong)?;
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(field);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moving_a_byte_between_fields_changes_the_encoding() {
        let ab_c = length_prefixed(&[b"ab", b"c"]).unwrap();
        let a_bc = length_prefixed(&[b"a", b"bc"]).unwrap();

        assert_eq!(ab_c, b"\x00\x02ab\x00\x01c");
        assert_ne!(ab_c, a_bc);
    }

    #[test]
    fn fields_over_65535_bytes_are_rejected() {
        assert!(length_prefixed(&[&[0; 65_535]]).is_ok());
        assert_eq!(length_prefixed(&[&[0; 65_536]]), Err(Error::ContextTooLong));
    }
}
