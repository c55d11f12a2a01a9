//! One history, several servers: the same answers and the same plans, whatever the number of workers, and again in a second run.
//!
//! Scheduling of threads is not deterministic; what is compared is the contents of every view after every change.

use sql_tests::equivalence::difference;
use sql_tests::generate::{Case, Generator, Step};
use sql_tests::process::Server;
use sql_tests::wire::{Client, Row};

/// The contents of all views after one step.
type Contents = Vec<(String, Vec<Row>)>;

struct Played {
    plans: Vec<Vec<Row>>,
    contents: Vec<Contents>,
}

fn contents(client: &mut Client, case: &Case, made: &[usize]) -> Contents {
    let read = |number: &usize| {
        let name = &case.views[*number].name;
        (name.clone(), client.rows(&format!("SELECT * FROM {name}")).expect("a view can be read"))
    };
    made.iter().map(read).collect()
}

fn play(case: &Case, workers: &str) -> Played {
    let server = Server::start_with(&["--workers", workers]).expect("start");
    let mut client = server.client().expect("connect");
    case.tables.iter().for_each(|table| drop(client.run(table).expect("a table")));
    let mut played = Played { plans: Vec::new(), contents: Vec::new() };
    let mut made = Vec::new();
    for step in &case.steps {
        match step {
            Step::Create(number) => {
                let create = case.views[*number].create();
                let plan = client.query(&format!("EXPLAIN {create}")).expect("an answer");
                played.plans.push(plan.answers.into_iter().flat_map(|answer| answer.rows).collect());
                if client.query(&create).expect("an answer").error.is_none() {
                    made.push(*number);
                }
            }
            Step::Change(statements) => {
                statements.iter().for_each(|statement| drop(client.query(statement).expect("an answer")));
                if client.status != 'I' {
                    client.run("ROLLBACK").expect("rollback");
                }
            }
            Step::Restart => {}
        }
        played.contents.push(contents(&mut client, case, &made));
    }
    played
}

#[test]
fn the_number_of_workers_changes_nothing() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    for round in 0..3 {
        let case = Generator::new(seed.wrapping_add(round)).case(12);
        let first = play(&case, "1");
        for workers in ["1", "2", "5"] {
            let other = play(&case, workers);
            assert_eq!(first.plans, other.plans, "seed {seed} + {round}: plans with {workers} workers");
            assert_eq!(first.contents.len(), other.contents.len());
            for (step, (ours, theirs)) in first.contents.iter().zip(&other.contents).enumerate() {
                assert_eq!(
                    ours.len(),
                    theirs.len(),
                    "seed {seed} + {round}, step {step}: views with {workers} workers"
                );
                for ((name, left), (_, right)) in ours.iter().zip(theirs) {
                    let different = difference(left, right);
                    assert_eq!(different, None, "seed {seed} + {round}, step {step}, {name} with {workers} workers");
                }
            }
        }
    }
}
