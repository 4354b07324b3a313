//! Finds the record of a key with few cache misses.

/// Boundaries in ascending order: each record applies from its start up to the next start.
///
/// The cost of a search is dominated by cache misses. The directory points to the few adjacent boundaries around a key:
/// two misses, compared with twenty for a plain binary search.
#[derive(Debug, Default, Eq, PartialEq)]
pub(in crate::bins) struct Space {
    boundaries: Vec<Boundary>,
    /// For each bucket of keys, the first boundary at or after its start; one more at the end.
    directory: Vec<u32>,
    first: u64,
    /// Binary logarithm of the bucket width.
    bucket_bits: u32,
}

/// A record applies from its start on. The start is split in halves to save padding: 12 bytes instead of 16.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Boundary {
    start: [u32; 2],
    record: u32,
}

impl Boundary {
    fn start(self) -> u64 {
        let [high, low] = self.start;
        u64::from(high) << 32 | u64::from(low)
    }
}

/// Marks the gap between two ranges.
pub(in crate::bins) const NO_RECORD: u32 = u32::MAX;
const BOUNDARIES_PER_BUCKET: u64 = 4;

impl Space {
    /// Appends a boundary above all others.
    pub(in crate::bins) fn push(&mut self, start: u64, record: u32) {
        let [high, low] = [start >> 32, start & u64::from(u32::MAX)];
        self.boundaries.push(Boundary {
            start: [high as u32, low as u32],
            record,
        });
    }

    /// The boundary that was appended last.
    pub(in crate::bins) fn last(&self) -> Option<(u64, u32)> {
        let last = self.boundaries.last()?;
        Some((last.start(), last.record))
    }

    /// Builds the directory once all boundaries are appended.
    pub(in crate::bins) fn index(&mut self) {
        self.boundaries.shrink_to_fit();
        self.first = self.boundaries.first().map_or(0, |first| first.start());
        let span = self.last().map_or(0, |(start, _)| start - self.first);
        let buckets = self.boundaries.len() as u64 / BOUNDARIES_PER_BUCKET;
        self.bucket_bits = 0;
        while span >> self.bucket_bits > buckets {
            self.bucket_bits += 1;
        }
        self.directory = Vec::with_capacity((span >> self.bucket_bits) as usize + 2);
        for (index, boundary) in (0..).zip(&self.boundaries) {
            let bucket = (boundary.start() - self.first) >> self.bucket_bits;
            while self.directory.len() as u64 <= bucket {
                self.directory.push(index);
            }
        }
        self.directory.push(self.boundaries.len() as u32);
    }

    pub(in crate::bins) fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        let boundaries = self.boundaries.iter();
        boundaries.map(|boundary| (boundary.start(), boundary.record))
    }

    pub(super) fn find(&self, key: u64) -> Option<u32> {
        let bucket = (key.checked_sub(self.first)? >> self.bucket_bits) as usize;
        // After the last bucket, the last boundary applies.
        let after = match self.directory.get(bucket..bucket + 2) {
            Some(&[from, to]) => {
                let near = self.boundaries.get(from as usize..to as usize)?;
                from as usize + near.partition_point(|boundary| boundary.start() <= key)
            }
            _ => self.boundaries.len(),
        };
        let record = self.boundaries.get(after.checked_sub(1)?)?.record;
        (record != NO_RECORD).then_some(record)
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.boundaries[..]) + size_of_val(&self.directory[..])
    }
}
