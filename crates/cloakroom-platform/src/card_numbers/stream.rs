//! Detection of card numbers in a stream.

use super::contains_card_number;

const CANDIDATE_BYTES_MAX: usize = 64;
/// A card number with a separator after each digit is shorter.
const OVERLAP_BYTES: usize = 40;

/// Searches chunks for card numbers: contiguous, or in groups with spaces or hyphens, also across chunks.
#[derive(Default)]
pub struct StreamDetector {
    candidate: String,
    is_found: bool,
}

impl StreamDetector {
    pub fn feed(&mut self, chunk: &[u8]) {
        if self.is_found {
            return;
        }
        for byte in chunk {
            match byte {
                b'0'..=b'9' => self.push(*byte),
                b' ' | b'-' if !self.candidate.is_empty() => self.push(*byte),
                _ if !self.candidate.is_empty() => self.check(),
                _ => {}
            }
        }
    }

    /// Whether a number was found. The next chunk starts a new value.
    pub fn finish(&mut self) -> bool {
        self.check();
        self.is_found
    }

    fn push(&mut self, byte: u8) {
        if self.candidate.len() == CANDIDATE_BYTES_MAX {
            self.is_found |= contains_card_number(&self.candidate);
            self.candidate.drain(..CANDIDATE_BYTES_MAX - OVERLAP_BYTES);
        }
        self.candidate.push(char::from(byte));
    }

    fn check(&mut self) {
        self.is_found |= contains_card_number(&self.candidate);
        self.candidate.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_at_every_division_into_chunks() {
        let long = format!("{}4242424242424242", "7 ".repeat(70));
        for text in [
            r#"{"id":"ic_1","number":"4242424242424242"}"#,
            r#"{"number":"4242 4242 4242 4242","id":1}"#,
            "5555-5555-5555-4444",
            &long,
        ] {
            for at in 0..text.len() {
                let (first, second) = text.as_bytes().split_at(at);
                let mut detector = StreamDetector::default();
                detector.feed(first);
                detector.feed(second);
                assert!(detector.finish(), "{text} divided at {at}");
            }
        }
    }

    #[test]
    fn other_numbers_are_not_found() {
        let mut detector = StreamDetector::default();
        detector.feed(
            br#"{"id":"8515131751004933","created":1700000000000,"last4":"4242","bin":"424242"}"#,
        );
        detector.feed(b"4242424242424241");
        assert!(!detector.finish());
    }
}
