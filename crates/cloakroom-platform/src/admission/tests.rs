//! Tests of fairness, cancellation and the limits of the queue.

use super::*;

const SOON: Duration = Duration::from_millis(50);

async fn yield_often() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// Waits for a permit, and sends it with its tenant when it is granted.
#[expect(clippy::disallowed_methods, reason = "the tasks end with the test")]
fn wait(
    semaphore: &FairSemaphore,
    tenant: Tenant,
    granted: &tokio::sync::mpsc::UnboundedSender<(Tenant, Permit)>,
) -> tokio::task::JoinHandle<()> {
    let (semaphore, granted) = (semaphore.clone(), granted.clone());
    tokio::spawn(async move {
        if let Ok(permit) = semaphore.acquire(tenant).await {
            let _ = granted.send((tenant, permit));
        }
    })
}

fn is_empty(semaphore: &FairSemaphore) -> bool {
    let state = lock(&semaphore.state);
    state.in_use == 0 && state.tenants.is_empty()
}

#[tokio::test]
async fn one_tenant_holds_at_most_three_quarters_of_the_permits() {
    let semaphore = FairSemaphore::new(8, SOON);
    let mut held = Vec::new();
    while let Ok(permit) = semaphore.acquire(1).await {
        held.push(permit);
    }

    let others = [semaphore.acquire(2).await, semaphore.acquire(3).await];
    let too_many = semaphore.acquire(4).await.is_err();

    assert_eq!(held.len(), 6);
    assert!(others.iter().all(Result::is_ok) && too_many);
    drop((held, others));
    assert!(semaphore.acquire(1).await.is_ok());
    assert!(is_empty(&semaphore));
}

#[tokio::test]
async fn released_permits_go_to_tenants_round_robin() {
    let semaphore = FairSemaphore::new(1, Duration::from_secs(60));
    let (granted, mut grants) = tokio::sync::mpsc::unbounded_channel();
    let held = semaphore.acquire(9).await.ok();
    let mut waiting = Vec::new();
    for tenant in [1, 1, 1, 1, 2, 2, 3] {
        waiting.push(wait(&semaphore, tenant, &granted));
        yield_often().await;
    }

    drop(held);
    let mut order = Vec::new();
    for _ in 0..7 {
        let (tenant, permit) = grants.recv().await.unwrap();
        order.push(tenant);
        drop(permit);
    }

    assert_eq!(order, [1, 2, 3, 1, 2, 1, 1]);
    assert!(is_empty(&semaphore));
}

#[tokio::test]
async fn a_canceled_request_holds_no_permit() {
    let semaphore = FairSemaphore::new(1, Duration::from_secs(60));
    let (granted, mut grants) = tokio::sync::mpsc::unbounded_channel();
    let held = semaphore.acquire(1).await.ok();
    let canceled = [wait(&semaphore, 2, &granted), wait(&semaphore, 1, &granted)];
    yield_often().await;
    let _waiting = wait(&semaphore, 2, &granted);
    yield_often().await;

    for task in canceled {
        task.abort();
    }
    yield_often().await;
    drop(held);

    let next = timeout(Duration::from_secs(10), grants.recv())
        .await
        .unwrap();
    assert_eq!(next.map(|(tenant, _)| tenant), Some(2));
    assert!(is_empty(&semaphore));
}

#[tokio::test]
async fn the_queue_is_bounded_in_length_and_time() {
    let semaphore = FairSemaphore::new(1, Duration::from_secs(60));
    let (granted, _grants) = tokio::sync::mpsc::unbounded_channel();
    let _held = semaphore.acquire(1).await.ok();
    let waiting: Vec<_> = (0..MAX_QUEUED)
        .map(|_| wait(&semaphore, 1, &granted))
        .collect();
    while lock(&semaphore.state).tenants[&1].queued.len() < MAX_QUEUED {
        yield_often().await;
    }

    let rejected = timeout(Duration::from_secs(10), semaphore.acquire(1)).await;
    assert_eq!(rejected.unwrap().err(), Some(Overloaded));
    drop(waiting);
    let impatient = FairSemaphore::new(1, SOON);
    let _held = impatient.acquire(1).await.ok();
    assert_eq!(impatient.acquire(1).await.err(), Some(Overloaded));
}
