//! `ParseCache`: what was parsed lately, so that it is parsed once.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

/// Keeps up to `capacity` parsed texts. One cache holds one kind of text: masks, or the templates of
/// one context.
///
/// Entries live in two generations. When the young one is full it becomes the old one, and the old
/// one is dropped; what is used moves back to the young. That keeps what is in use for the price of
/// two look-ups, without a list to maintain.
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

    /// Parses `text` unless it is known. Failures are not kept.
    pub fn find_or_parse<E>(
        &self,
        text: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        if let Some(found) = self.find(text) {
            return Ok(found);
        }
        // Outside the lock: two callers may parse the same text, none waits for another's.
        let parsed = Arc::new(parse(text)?);
        self.keep(text, &parsed);
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
        self.keep(text, &promoted);
        Some(promoted)
    }

    fn keep(&self, text: &str, parsed: &Arc<T>) {
        let mut generations = self.lock();
        if generations.young.len() >= self.generation_size {
            generations.old = mem::take(&mut generations.young);
        }
        generations.young.insert(text.into(), Arc::clone(parsed));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Generations<T>> {
        // Every change leaves the maps whole, so a panic elsewhere does not matter.
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
    fn what_is_used_stays_and_the_rest_goes() {
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
