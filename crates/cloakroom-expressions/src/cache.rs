//! `ParseCache`: a cache of parsed expressions.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

/// Caches up to `capacity` parsed texts of one kind: masks, or the templates of one context.
///
/// Entries are in two generations. When the young generation is full it replaces the old one, whose entries
/// are evicted. A hit in the old generation moves the entry to the young one. This approximates LRU with two
/// lookups and no linked list.
pub struct ParseCache<T> {
    generation_size: usize,
    generations: Mutex<Generations<T>>,
}

struct Generations<T> {
    young: HashMap<Box<str>, Arc<T>>,
    old: HashMap<Box<str>, Arc<T>>,
}

impl<T> ParseCache<T> {
    pub fn new(capacity: usize) -> Self {
        Self {
            generation_size: (capacity / 2).max(1),
            generations: Mutex::new(Generations {
                young: HashMap::new(),
                old: HashMap::new(),
            }),
        }
    }

    /// Returns the cached entry, or parses `text` and caches the result. Errors are not cached.
    pub fn find_or_parse<E>(
        &self,
        text: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        if let Some(found) = self.find(text) {
            return Ok(found);
        }
        // Parses outside the lock: two callers may parse the same text, but none waits for another.
        let parsed = Arc::new(parse(text)?);
        self.insert(text, &parsed);
        Ok(parsed)
    }

    fn find(&self, text: &str) -> Option<Arc<T>> {
        let promoted = {
            let mut generations = self.lock();
            if let Some(found) = generations.young.get(text) {
                return Some(Arc::clone(found));
            }
            generations.old.remove(text)?
        };
        self.insert(text, &promoted);
        Some(promoted)
    }

    fn insert(&self, text: &str, parsed: &Arc<T>) {
        let mut generations = self.lock();
        if generations.young.len() >= self.generation_size {
            generations.old = mem::take(&mut generations.young);
        }
        generations.young.insert(text.into(), Arc::clone(parsed));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Generations<T>> {
        // Every update leaves the maps consistent, so a poisoned lock is safe to use.
        self.generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::{Context, ParseError, Template};

    fn find(cache: &ParseCache<Template>, text: &str) -> (Result<(), ParseError>, bool) {
        let parsed = Cell::new(false);
        let found = cache.find_or_parse(text, |text| {
            parsed.set(true);
            Template::parse(Context::Mask, text)
        });
        (found.map(drop), parsed.get())
    }

    #[test]
    fn a_text_is_parsed_once() {
        let cache = ParseCache::new(8);

        assert_eq!(find(&cache, "{{ data }}"), (Ok(()), true));
        assert_eq!(find(&cache, "{{ data }}"), (Ok(()), false));
        let failure = (Err(ParseError::NoValue), true);
        assert_eq!(find(&cache, "{{ }}"), failure);
        assert_eq!(find(&cache, "{{ }}"), failure);
    }

    #[test]
    fn used_entries_survive_and_others_are_evicted() {
        let cache = ParseCache::new(8);
        for number in 0..100 {
            let _ = find(&cache, "used");
            let _ = find(&cache, &format!("once {number}"));
        }

        assert!(!find(&cache, "used").1);
        assert!(find(&cache, "once 0").1);
        let generations = cache.lock();
        assert!(generations.young.len() + generations.old.len() <= 8);
    }
}
