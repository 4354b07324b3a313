//! Whether an answer fits its request, and a result its answer.

use cloakroom_emv3ds::codes::{ChallengeType, DeviceChannel, TransStatus};
use cloakroom_emv3ds::{
    AReq, ARes, CardholderInfo, Fault, Message, MessageKind, RReq, Version, field_of, read,
};
use serde_json::{Value, json};

use crate::samples::{Case, Fields, areq, ares, cases, rreq, statuses, text};

const OTHER_ID: &str = "11111111-2222-4333-8444-555555555555";

fn request(case: Case) -> AReq {
    let mut fields = areq(case);
    if case.version > Version::V2_1_0 {
        fields.insert("threeDSRequestorDecReqInd".into(), "Y".into());
        fields.insert("threeDSRequestorDecMaxTime".into(), "00060".into());
    }
    AReq::from_object(fields).unwrap()
}

/// Read, and held against its request: either can find what is wrong.
fn answered(fields: &Fields, request: &AReq) -> Result<ARes, Fault> {
    match read(&text(fields), &[MessageKind::ARes], &Version::ALL)? {
        Message::ARes(answer) => answer.answers(request).map(|()| *answer),
        _ => panic!("not an answer"),
    }
}

fn concluded(fields: &Fields, answer: &ARes, case: Case) -> Result<RReq, Fault> {
    let channel = DeviceChannel::from_code(case.channel).unwrap();
    match read(&text(fields), &[MessageKind::RReq], &Version::ALL)? {
        Message::RReq(result) => result.concludes(answer, channel).map(|()| *result),
        _ => panic!("not a result"),
    }
}

fn told<T>(result: Result<T, Fault>) -> (&'static str, String) {
    match result {
        Ok(_) => ("", String::new()),
        Err(fault) => (fault.code.code(), fault.detail),
    }
}

fn few_cases() -> Vec<Case> {
    let mut cases = cases();
    cases.retain(|case| case.indicator == "02");
    cases
}

#[test]
fn an_answer_needs_what_its_status_channel_and_category_need() {
    for case in few_cases() {
        let request = request(case);
        for status in statuses(case) {
            let fields = ares(case, status);
            let whole = answered(&fields, &request);
            let whole = whole.unwrap_or_else(|fault| panic!("{case:?} {status}: {fault}"));
            assert_eq!(
                whole.trans_status.is_some(),
                fields.contains_key("transStatus")
            );
            for name in fields.keys().filter(|name| *name != "messageType") {
                // Without its status an answer needs less, and only payments need a status.
                let payment = case.category == "01";
                let expected = match name.as_str() {
                    "transStatus" if !payment => ("", String::new()),
                    _ => ("201", name.clone()),
                };
                let mut fewer = fields.clone();
                fewer.shift_remove(name);
                assert_eq!(
                    told(answered(&fewer, &request)),
                    expected,
                    "{case:?} {status}"
                );
            }
        }
    }
}

#[test]
fn an_answer_belongs_to_its_request() {
    for case in few_cases() {
        let request = request(case);
        let fields = ares(case, "U");
        let with = |name: &str, value: Value| {
            let mut changed = fields.clone();
            changed.insert(name.into(), value);
            told(answered(&changed, &request))
        };
        let stranger = |name: &str| ("301", name.to_owned());
        assert_eq!(
            with("threeDSServerTransID", OTHER_ID.into()),
            stranger("threeDSServerTransID")
        );
        let upper = request.threeds_server_trans_id.to_uppercase();
        assert_eq!(with("threeDSServerTransID", upper.into()).0, "");
        if case.channel == "01" {
            assert_eq!(with("sdkTransID", OTHER_ID.into()), stranger("sdkTransID"));
        }
        let other = if case.version == Version::V2_1_0 {
            "2.2.0"
        } else {
            "2.1.0"
        };
        let expected = ("203", "messageVersion".to_owned());
        assert_eq!(with("messageVersion", other.into()), expected);
    }
}

#[test]
fn an_answer_is_one_that_was_asked_for() {
    let unexpected = ("203", "transStatus".to_owned());
    for case in few_cases() {
        let asking = request(case);
        let not_asking = AReq::from_object(areq(case)).unwrap();
        let decoupled = ares(case, "D");
        if case.version == Version::V2_1_0 {
            assert_eq!(
                told(answered(&decoupled, &asking)).0,
                "203",
                "no such status"
            );
            assert_eq!(
                told(answered(&ares(case, "I"), &asking)).0,
                if case.category == "01" { "203" } else { "" }
            );
            continue;
        }
        assert_eq!(told(answered(&decoupled, &asking)).0, "");
        assert_eq!(told(answered(&decoupled, &not_asking)), unexpected);
        let mut refusing = areq(case);
        refusing.insert("threeDSRequestorDecReqInd".into(), "N".into());
        let refusing = AReq::from_object(refusing).unwrap();
        assert_eq!(told(answered(&decoupled, &refusing)), unexpected);
        if case.channel == "03" {
            assert_eq!(told(answered(&ares(case, "C"), &asking)), unexpected);
        }
        let mut unconfirmed = decoupled.clone();
        unconfirmed["acsDecConInd"] = "N".into();
        assert_eq!(
            told(answered(&unconfirmed, &asking)),
            ("203", "acsDecConInd".to_owned())
        );
    }
}

#[test]
fn a_result_needs_what_its_status_channel_and_category_need() {
    for case in few_cases() {
        for answer_status in ["C", "D"] {
            if answer_status == "D" && case.version == Version::V2_1_0 {
                continue;
            }
            let answer = ARes::from_object(ares(case, answer_status)).unwrap();
            for status in ["Y", "A", "N", "U", "R"] {
                let fields = rreq(case, answer_status, status);
                let whole = concluded(&fields, &answer, case);
                whole.unwrap_or_else(|fault| panic!("{case:?} {status}: {fault}"));
                for name in fields.keys().filter(|name| *name != "messageType") {
                    let mut fewer = fields.clone();
                    fewer.shift_remove(name);
                    let found = told(concluded(&fewer, &answer, case));
                    assert_eq!(
                        found,
                        ("201", name.clone()),
                        "{case:?} {answer_status} {status}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_result_belongs_to_its_answer() {
    for case in few_cases() {
        let answer = ARes::from_object(ares(case, "C")).unwrap();
        let fields = rreq(case, "C", "Y");
        let mut ids = vec!["threeDSServerTransID", "acsTransID", "dsTransID"];
        if case.channel == "01" {
            ids.push("sdkTransID");
        }
        for name in ids {
            let mut stranger = fields.clone();
            stranger[name] = OTHER_ID.into();
            assert_eq!(
                told(concluded(&stranger, &answer, case)),
                ("301", name.to_owned())
            );
        }
        let other = if case.version == Version::V2_1_0 {
            "2.2.0"
        } else {
            "2.1.0"
        };
        let mut fields = fields;
        fields.shift_remove("authenticationMethod");
        fields.shift_remove("authenticationType");
        fields["messageVersion"] = other.into();
        let needed = if case.category == "01" {
            ("201", "authenticationType")
        } else {
            ("203", "messageVersion")
        };
        let found = told(concluded(&fields, &answer, case));
        assert_eq!(found, (needed.0, needed.1.to_owned()));
    }
}

/// A status that only ends a challenge, or only begins one, is none of the other message.
#[test]
fn statuses_are_those_of_their_message_and_version() {
    for (version, of_answer, of_result) in [
        (Version::V2_1_0, "YNUACR", "YNUAR"),
        (Version::V2_2_0, "YNUACDRI", "YNUAR"),
        (Version::V2_3_1, "YNUACDRIS", "YNUARD"),
    ] {
        for (kind, statuses) in [
            (MessageKind::ARes, of_answer),
            (MessageKind::RReq, of_result),
            (MessageKind::CRes, "YN"),
        ] {
            let format = field_of(kind, "transStatus", version, None).unwrap().format;
            for status in "YNUACDRISXynu".chars() {
                let accepted = format.accepts(&json!(status));
                assert_eq!(
                    accepted,
                    statuses.contains(status),
                    "{kind} {version} {status}"
                );
            }
        }
    }
}

#[test]
fn an_answer_tells_what_it_tells() {
    let case = Case {
        version: Version::V2_3_1,
        channel: "02",
        category: "01",
        indicator: "01",
    };
    let answer = ARes::from_object(ares(case, "D")).unwrap();
    assert_eq!(answer.trans_status, Some(TransStatus::DecoupledChallenge));
    assert_eq!(
        answer.cardholder_info.as_ref().map(CardholderInfo::text),
        Some("Open your bank's app.")
    );
    assert_eq!(
        answer.authentication_method.as_deref(),
        Some(&["12".to_owned()][..])
    );
    let mut fields = ares(
        Case {
            version: Version::V2_2_0,
            ..case
        },
        "Y",
    );
    fields.insert("transStatusReason".into(), "87".into());
    fields.insert("eci".into(), "N0".into());
    let answer = ARes::from_object(fields).unwrap();
    assert_eq!(
        answer.trans_status_reason.as_deref(),
        Some("87"),
        "unknown codes survive"
    );
    let value = answer
        .authentication_value
        .as_ref()
        .map(|value| value.expose().len());
    assert_eq!(value, Some(28));
    assert_eq!(json!(answer.eci), json!("N0"));
}

#[test]
fn renamed_fields_tell_the_same_in_all_versions() {
    for version in [Version::V2_2_0, Version::V2_3_1] {
        let case = Case {
            version,
            channel: "02",
            category: "01",
            indicator: "01",
        };
        let list = if version == Version::V2_3_1 {
            "trustList"
        } else {
            "whiteList"
        };
        let mut result = rreq(case, "C", "Y");
        result.insert(format!("{list}Status"), "P".into());
        result.insert(format!("{list}StatusSource"), "03".into());
        let result = RReq::from_object(result).unwrap();
        assert_eq!(result.challenge_type(), Some(ChallengeType::Dynamic));
        assert_eq!(
            (result.list_status(), result.list_status_source()),
            (Some("P"), Some("03"))
        );
        let answer = ARes::from_object(ares(case, "D")).unwrap();
        assert_eq!(answer.challenge_type(), Some(ChallengeType::Decoupled));
        assert_eq!(answer.list_status(), None);
    }
}
