//! Responses to callers, with placeholders for values that differ in every run.

use std::collections::HashMap;

use cloakroom_testkit::TestResponse;
use http::{Method, StatusCode};
use serde_json::Value;

use super::world::PlantedIds;

/// The responses of one sequence in one world.
pub(super) struct Transcript {
    pub(super) lines: Vec<String>,
    pub(super) succeeded: usize,
    /// Ids of tokens that the callers created.
    pub(super) created: Vec<String>,
    /// Values of the placeholders in calls.
    pub(super) names: HashMap<&'static str, String>,
    /// Ids and fingerprints, numbered in order of appearance.
    numbers: HashMap<String, usize>,
}

impl Transcript {
    pub(super) fn new(planted: &PlantedIds) -> Self {
        let names = [
            ("@victim", &planted.victim),
            ("@encrypted", &planted.encrypted),
            ("@sent", &planted.sent),
            ("@known", &planted.known),
            ("@number", &planted.known_number),
            ("@fingerprint", &planted.known_number),
            ("@intent", &planted.known_number),
        ];
        let names = names.map(|(name, value)| (name, value.clone()));
        let mut transcript = Self {
            lines: Vec::new(),
            succeeded: 0,
            created: Vec::new(),
            names: names.into(),
            numbers: HashMap::new(),
        };
        for id in [&planted.victim, &planted.known] {
            transcript.number(id.clone());
        }
        transcript
    }

    /// Appends a response and updates the placeholders for later calls.
    pub(super) fn add(&mut self, method: &Method, path: &str, response: &TestResponse) {
        self.succeeded += usize::from(response.status.is_success());
        if let Some(fingerprint) = response.body["fingerprint"].as_str() {
            self.names.insert("@fingerprint", fingerprint.to_owned());
        }
        if path == "/token-intents" && response.status.is_success() {
            self.names.insert("@intent", response.id());
        }
        if response.status == StatusCode::CREATED || path == "/tokenize" {
            let ids = [&response.body["id"], &response.body[0]["id"]];
            let ids = ids.into_iter().filter_map(Value::as_str);
            self.created.extend(ids.map(str::to_owned));
        }
        let proxied = ["x-reference", "bt-proxy-destination-status"];
        let headers = proxied.map(|name| response.headers.get(name));
        let mut body = response.body.clone();
        self.normalize(&mut body, "");
        self.lines.push(format!(
            "{method} {path}: {} {headers:?} {body}",
            response.status
        ));
    }

    /// Appends what a destination received.
    pub(super) fn add_received(&mut self, lines: Vec<String>) {
        for line in lines {
            let line = self.normalize_text(&line);
            self.lines.push(line);
        }
    }

    fn normalize(&mut self, value: &mut Value, name: &str) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    self.normalize(member, name);
                }
            }
            Value::Array(elements) => elements
                .iter_mut()
                .for_each(|one| self.normalize(one, name)),
            Value::String(text) => {
                let is_time = name.ends_with("_at") && text.contains('T');
                let is_cursor = matches!(name, "after" | "next" | "nonce" | "session_key");
                let is_key = matches!(name, "key" | "public_key" | "publicKeyPEM");
                *text = match is_time || is_cursor || is_key {
                    true => format!("<{name}>"),
                    false => self.normalize_text(text),
                };
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Replaces every id and fingerprint in the text by its number.
    fn normalize_text(&mut self, text: &str) -> String {
        let is_part = |character: char| character.is_ascii_alphanumeric() || character == '-';
        let mut normalized = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(is_part) {
            let (before, from) = rest.split_at(start);
            let end = from
                .find(|character| !is_part(character))
                .unwrap_or(from.len());
            let (word, after) = from.split_at(end);
            normalized.push_str(before);
            let is_uuid = word.len() == 36 && uuid::Uuid::try_parse(word).is_ok();
            let is_fingerprint = (40..=46).contains(&word.len()) && !word.contains('-');
            match is_uuid || is_fingerprint {
                true => normalized.push_str(&self.number(word.to_owned())),
                false => normalized.push_str(word),
            }
            rest = after;
        }
        normalized + rest
    }

    fn number(&mut self, word: String) -> String {
        let next = self.numbers.len();
        format!("<{}>", self.numbers.entry(word).or_insert(next))
    }
}
