//! Logos: PNG, JPEG and WebP images, recognized by their content.
//!
//! The structure is checked, but images are not decoded, and metadata can contain anything: a valid image may also be a
//! script or an archive. Browsers treat it only as an image because it is served with a fixed media type, `nosniff` and
//! a sandbox.

/// Maximum size of a logo, in bytes.
pub(super) const BYTES_MAX: usize = 64 * 1024;
/// Maximum width and height, in pixels.
const PIXELS_MAX: u32 = 1024;

/// An image that is safe to serve with its media type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub kind: ImageKind,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageKind {
    Png = 1,
    Jpeg = 2,
    WebP = 3,
}

impl ImageKind {
    pub(super) fn from_number(number: i16) -> Option<Self> {
        [Self::Png, Self::Jpeg, Self::WebP]
            .into_iter()
            .find(|kind| *kind as i16 == number)
    }

    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::WebP => "image/webp",
        }
    }
}

impl Image {
    pub const RULE: &str = "must be a PNG, JPEG or WebP image in Base64, without animation, of at most 64 KiB and \
                            1024 by 1024 pixels";

    pub fn parse(bytes: Vec<u8>) -> Option<Self> {
        if bytes.len() > BYTES_MAX {
            return None;
        }
        let parsers = [
            (ImageKind::Png, png(&bytes)),
            (ImageKind::Jpeg, jpeg(&bytes)),
            (ImageKind::WebP, webp(&bytes)),
        ];
        let (kind, (width, height)) = parsers
            .into_iter()
            .find_map(|(kind, size)| Some((kind, size?)))?;
        let is_allowed = |pixels| (1..=PIXELS_MAX).contains(&pixels);
        (is_allowed(width) && is_allowed(height)).then_some(Self { kind, bytes })
    }
}

/// Width and height.
type Size = (u32, u32);

/// Chunks from IHDR to IEND, and nothing after.
fn png(bytes: &[u8]) -> Option<Size> {
    let mut rest = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    let mut size = None;
    loop {
        let length = be32(rest.get(..4)?)? as usize;
        let kind = rest.get(4..8)?;
        let content = rest.get(8..length.checked_add(8)?)?;
        rest = rest.get(length.checked_add(12)?..)?;
        match kind {
            b"IHDR" if size.is_none() && length == 13 => {
                size = Some((be32(content.get(..4)?)?, be32(content.get(4..8)?)?));
            }
            // Animated.
            b"acTL" => return None,
            b"IEND" => return size.filter(|_| rest.is_empty() && length == 0),
            _ if size.is_none() => return None,
            _ => {}
        }
    }
}

/// Segments from SOI to the scan, which ends with EOI as the last bytes.
fn jpeg(bytes: &[u8]) -> Option<Size> {
    let mut rest = bytes.strip_prefix(b"\xff\xd8")?.strip_suffix(b"\xff\xd9")?;
    let mut size = None;
    loop {
        let &[0xff, marker, high, low, ..] = rest else {
            return None;
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let content = rest.get(4..length.checked_add(2)?)?;
        match marker {
            // Start of frame: precision, height, width.
            0xc0..=0xc2 => size = Some((be16(content.get(3..5)?)?, be16(content.get(1..3)?)?)),
            // Start of scan: compressed data follows, in which no end marker occurs before the last bytes.
            0xda => {
                let data = rest.get(length.checked_add(2)?..)?;
                let has_end = data.windows(2).any(|pair| pair == b"\xff\xd9");
                return size.filter(|_| !has_end);
            }
            0xc4 | 0xdb | 0xdd | 0xe0..=0xef | 0xfe => {}
            _ => return None,
        }
        rest = rest.get(length.checked_add(2)?..)?;
    }
}

/// A RIFF file of exactly its stated size, whose first chunk has the dimensions.
fn webp(bytes: &[u8]) -> Option<Size> {
    let rest = bytes.strip_prefix(b"RIFF")?;
    let length = le32(rest.get(..4)?)? as usize;
    let content = rest.get(4..)?;
    if content.len() != length {
        return None;
    }
    let chunk = content.strip_prefix(b"WEBP")?;
    let data = chunk.get(8..)?;
    match chunk.get(..4)? {
        // Lossy: a frame tag and a start code, then both sides with 14 bits.
        b"VP8 " if data.get(3..6)? == b"\x9d\x01\x2a" => {
            let side = |at: usize| Some(le16(data.get(at..at + 2)?)? & 0x3fff);
            Some((side(6)?, side(8)?))
        }
        // Lossless: a signature, then both sides minus one with 14 bits.
        b"VP8L" if *data.first()? == 0x2f => {
            let bits = le32(data.get(1..5)?)?;
            Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
        }
        // Extended: flags, then both sides minus one with 24 bits. The flag 0x02 is an animation.
        b"VP8X" if *data.first()? & 0x02 == 0 => {
            let width = le32(data.get(4..8)?)? & 0x00ff_ffff;
            let height = le32(data.get(6..10)?)? >> 8;
            Some((width + 1, height + 1))
        }
        _ => None,
    }
}

fn be16(bytes: &[u8]) -> Option<u32> {
    Some(u16::from_be_bytes(bytes.try_into().ok()?).into())
}

fn be32(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

fn le16(bytes: &[u8]) -> Option<u32> {
    Some(u16::from_le_bytes(bytes.try_into().ok()?).into())
}

fn le32(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png_of(width: u32, height: u32, extra: &[(&[u8], &[u8])]) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
        let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
        header.extend([8, 6, 0, 0, 0]);
        let mut chunk = |kind: &[u8], content: &[u8]| {
            let length = u32::try_from(content.len()).unwrap();
            bytes.extend([&length.to_be_bytes(), kind, content, &[0; 4]].concat());
        };
        chunk(b"IHDR", &header);
        for (kind, content) in extra {
            chunk(kind, content);
        }
        chunk(b"IDAT", b"x");
        chunk(b"IEND", b"");
        bytes
    }

    fn jpeg_of(width: u16, height: u16) -> Vec<u8> {
        let mut bytes = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x0b\x08".to_vec();
        bytes.extend([height.to_be_bytes(), width.to_be_bytes()].concat());
        bytes.extend(
            b"\x01\x01\x11\x00\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00data\xff\x00\xff\xd9",
        );
        bytes
    }

    fn webp_of(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
        let chunk = [
            &kind[..],
            &u32::try_from(data.len()).unwrap().to_le_bytes(),
            data,
        ]
        .concat();
        let length = u32::try_from(chunk.len() + 4).unwrap().to_le_bytes();
        [b"RIFF", &length[..], b"WEBP", &chunk].concat()
    }

    #[test]
    fn images_are_recognized_by_their_content() {
        let images = [
            (png_of(64, 32, &[]), ImageKind::Png),
            (png_of(1024, 1024, &[(b"tEXt", b"c")]), ImageKind::Png),
            (jpeg_of(64, 32), ImageKind::Jpeg),
            (
                webp_of(b"VP8 ", b"\0\0\0\x9d\x01\x2a\x40\0\x20\0"),
                ImageKind::WebP,
            ),
            (webp_of(b"VP8L", b"\x2f\x3f\xc0\x07\0"), ImageKind::WebP),
            (
                webp_of(b"VP8X", b"\x10\0\0\0\x3f\0\0\x1f\0\0"),
                ImageKind::WebP,
            ),
        ];
        for (bytes, kind) in images {
            assert_eq!(Image::parse(bytes).map(|image| image.kind), Some(kind));
        }
    }

    #[test]
    fn other_content_is_rejected() {
        let with = |mut bytes: Vec<u8>, more: &[u8]| {
            bytes.extend(more);
            bytes
        };
        let svg = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>";
        let mut truncated = png_of(64, 32, &[]);
        truncated.truncate(40);
        let mut disguised = jpeg_of(64, 32);
        disguised.splice(2..2, *b"<script>");
        let cases: [(&str, Vec<u8>); 14] = [
            ("empty", Vec::new()),
            ("svg", svg.to_vec()),
            ("gif", b"GIF89a".to_vec()),
            ("text after PNG", with(png_of(64, 32, &[]), b"<script>")),
            ("text after JPEG", with(jpeg_of(64, 32), b"<script>")),
            ("JPEG after JPEG", with(jpeg_of(64, 32), b"PK\xff\xd9")),
            ("text in JPEG", disguised),
            (
                "text after WebP",
                with(webp_of(b"VP8L", b"\x2f\x3f\xc0\x07\0"), b"x"),
            ),
            ("truncated PNG", truncated),
            (
                "animated PNG",
                png_of(64, 32, &[(b"acTL", b"\0\0\0\x02\0\0\0\0")]),
            ),
            (
                "animated WebP",
                webp_of(b"VP8X", b"\x02\0\0\0\x3f\0\0\x1f\0\0"),
            ),
            ("wide", png_of(1025, 1, &[])),
            ("no pixels", jpeg_of(0, 10)),
            ("large", png_of(64, 32, &[(b"tEXt", &[0; BYTES_MAX])])),
        ];
        for (name, bytes) in cases {
            assert_eq!(Image::parse(bytes), None, "{name}");
        }
    }
}
