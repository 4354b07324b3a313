//! Rows that are not current: how commands report and accept them.

use crate::support::{Deployment, query};

#[test]
fn rows_that_are_not_current_are_named_and_accepted_by_command() {
    let (deployment, _) = Deployment::with_keys(&["/ reveal token:create", "/ mask token:read"]);
    let tenant = &query(&deployment.postgres, "select public_id::text from tenant")[0];
    let reanchor = |more: &[&str]| {
        deployment.run(&[&["access", "re-anchor", "--tenant", tenant], more].concat())
    };
    let verified = deployment.run(&["audit", "verify"]);
    assert!(verified.success, "{}{}", verified.stdout, verified.stderr);

    let delete =
        "delete from application_key where key_id = (select key_id from application_key limit 1)";
    query(&deployment.postgres, delete);

    let bucket = format!("tenant {tenant}, bucket ");
    for command in [&["audit", "verify"][..], &["doctor"]] {
        let reported = deployment.run(command);
        assert!(!reported.success, "{command:?}");
        let output = format!("{}{}", reported.stdout, reported.stderr);
        assert!(output.contains(&bucket), "{command:?} {output}");
    }
    let listed = reanchor(&[]);
    assert!(
        !listed.success && listed.stdout.contains(&bucket),
        "{}",
        listed.stdout
    );
    assert!(
        listed.stdout.contains("nothing was changed"),
        "{}",
        listed.stdout
    );
    let accepted = reanchor(&["--confirm"]);
    assert!(accepted.success, "{}{}", accepted.stdout, accepted.stderr);
    let verified = deployment.run(&["audit", "verify"]);
    assert!(verified.success, "{}{}", verified.stdout, verified.stderr);
}
