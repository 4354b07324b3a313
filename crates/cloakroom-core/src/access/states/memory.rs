//! The generations that this node has seen.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::{Bucket, Stale, StoredBucket};
use crate::keys::ControlKey;

/// Bounds the memory to about 50 MB. Beyond it, some bucket is forgotten for every new one.
const BUCKETS_MAX: usize = 1 << 20;

/// The highest generation that this node has seen of each bucket.
///
/// A state that is restored together with its rows is consistent; only memory outside the database shows that it is old.
#[derive(Default)]
pub struct AccessStates {
    generations: Mutex<HashMap<(i32, Bucket), i64>>,
}

impl AccessStates {
    /// Verifies that the rows of a bucket are the current ones, and remembers their generation.
    pub fn verify(
        &self,
        control: &ControlKey,
        tenant: i32,
        bucket: Bucket,
        stored: &StoredBucket,
    ) -> Result<(), Stale> {
        let generation = stored.generation(control, tenant, bucket)?;
        match self.remember(tenant, bucket, generation) {
            true => Ok(()),
            false => Err(Stale::Older),
        }
    }

    /// Remembers a committed generation; false if a higher one is known.
    pub fn remember(&self, tenant: i32, bucket: Bucket, generation: i64) -> bool {
        let generations = self.generations.lock();
        let mut generations = generations.unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = generations.get_mut(&(tenant, bucket)) {
            *known = generation.max(*known);
            return *known == generation;
        }
        if generations.len() >= BUCKETS_MAX {
            let any = generations.keys().next().copied();
            any.map(|any| generations.remove(&any));
        }
        generations.insert((tenant, bucket), generation);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_generation_than_the_highest_seen_is_not_accepted() {
        let states = AccessStates::default();
        let (bucket, other) = (Bucket::TENANT, Bucket::RESOURCES);

        let accepted = [
            (1, bucket, 5),
            (1, bucket, 5),
            (1, bucket, 7),
            (1, other, 1),
        ];
        for (tenant, bucket, generation) in accepted {
            assert!(states.remember(tenant, bucket, generation), "{generation}");
        }
        assert!(!states.remember(1, bucket, 6));
        assert!(states.remember(2, bucket, 6));
        assert!(states.remember(1, bucket, 7));
    }
}
