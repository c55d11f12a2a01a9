//! Runs the SQL examples of the documentation through psql, so that what readers see is what psql prints.
//!
//! A fenced block ```` ```sql ```` is sent to psql as it stands. A fenced block ```` ```text ```` right after it is what psql prints for
//! it (`-q`, so without command tags); white space at the ends of lines and empty lines do not count. A comment `-- error: text` says
//! that the block fails with a message that contains the text; without one no error may appear. The blocks of one page run in order,
//! in one fresh schema. ```` ```sql norun ```` is not run. With `REWRITE=1` the text blocks become what psql prints.

use anyhow::{Context, Result, bail};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::{Server, checkout, shared};

/// An example of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// Line of the opening fence, from 1.
    pub line: usize,
    /// The statements.
    pub sql: String,
    /// What psql prints, if the page says so.
    pub output: Option<String>,
    /// Lines of the page that hold the output, from 0, without the fences.
    output_lines: std::ops::Range<usize>,
}

impl Example {
    /// Texts of the errors that it must meet.
    pub fn errors(&self) -> Vec<&str> {
        self.sql.lines().filter_map(|line| line.trim().strip_prefix("-- error: ")).collect()
    }
}

/// All pages with examples: README.md and docs/src.
pub fn pages() -> Result<Vec<PathBuf>> {
    let mut found = vec![checkout().join("README.md")];
    collect(&checkout().join("docs/src"), &mut found)?;
    found.sort();
    Ok(found)
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    Ok(())
}

/// The examples of a page.
pub fn parse(text: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut fence: Option<(String, usize, String)> = None;
    // Whether an output block may still belong to the last example.
    let mut adjacent = false;
    for (number, line) in text.lines().enumerate() {
        match (&mut fence, line.strip_prefix("```")) {
            (None, Some(kind)) => fence = Some((kind.trim().to_string(), number + 1, String::new())),
            (None, None) => adjacent &= line.trim().is_empty(),
            (Some((_, _, body)), None) => {
                body.push_str(line);
                body.push('\n');
            }
            (Some(_), Some(_)) => {
                let Some((kind, line, body)) = fence.take() else { continue };
                if kind == "sql" {
                    examples.push(Example { line, sql: body, output: None, output_lines: 0..0 });
                    adjacent = true;
                    continue;
                }
                if kind == "text"
                    && adjacent
                    && let Some(last) = examples.last_mut()
                {
                    last.output = Some(body);
                    last.output_lines = line..number;
                }
                adjacent = false;
            }
        }
    }
    examples
}

/// Runs the examples of one page; one error for each that is not as the page says.
pub fn run_page(server: &Server, page: &Path, rewrite: bool) -> Result<(usize, Vec<String>)> {
    let text = std::fs::read_to_string(page)?;
    let name = page.strip_prefix(checkout()).unwrap_or(page).display().to_string();
    let examples = parse(&text);
    if examples.is_empty() {
        return Ok((0, Vec::new()));
    }
    let mut client = server.client()?;
    client.run("DROP SCHEMA IF EXISTS page CASCADE; CREATE SCHEMA page")?;
    let mut wrong = Vec::new();
    let mut outputs = Vec::new();
    for example in &examples {
        match run_example(server.port(), example, rewrite) {
            Ok(output) => outputs.push(output),
            Err(error) => {
                outputs.push(example.output.clone().unwrap_or_default());
                wrong.push(format!("{name}:{}: {error:#}", example.line));
            }
        }
    }
    client.run("DROP SCHEMA page CASCADE")?;
    if rewrite {
        std::fs::write(page, with_outputs(&text, &examples, &outputs))?;
    }
    Ok((examples.len(), wrong))
}

/// The page with these outputs in its text blocks.
fn with_outputs(text: &str, examples: &[Example], outputs: &[String]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    for (example, output) in examples.iter().zip(outputs).rev().filter(|(example, _)| example.output.is_some()) {
        let output = output.lines().map(|line| line.trim_end().to_string()).collect::<Vec<_>>();
        let end = output.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        lines.splice(example.output_lines.clone(), output[..end].to_vec());
    }
    lines.join("\n") + "\n"
}

fn run_example(port: u16, example: &Example, rewrite: bool) -> Result<String> {
    let (output, errors) = psql(port, &example.sql)?;
    let expected = example.errors();
    if expected.is_empty() && errors.contains("ERROR") {
        bail!("{}", errors.trim());
    }
    for text in expected {
        if !errors.contains(text) {
            bail!("no error with {text:?}: {}", errors.trim());
        }
    }
    if let Some(wanted) = &example.output
        && !rewrite
        && plain(wanted) != plain(&output)
    {
        bail!("psql prints\n{output}");
    }
    Ok(output)
}

/// Output and errors of psql for these statements, in the schema of the page.
fn psql(port: u16, sql: &str) -> Result<(String, String)> {
    let data = shared().join("data/nycflights13");
    let directory = if data.is_dir() { data } else { std::env::temp_dir() };
    let mut child = Command::new("psql")
        .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-U", "tidemill", "-Xq", "-f", "-", "tidemill"])
        .env("LC_ALL", "C.UTF-8")
        .env("PAGER", "cat")
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("psql")?;
    let mut input = child.stdin.take().context("no input")?;
    input.write_all(format!("SET search_path TO page;\n{sql}\n").as_bytes())?;
    drop(input);
    let output = child.wait_with_output()?;
    Ok((String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

fn plain(text: &str) -> Vec<&str> {
    text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_belongs_to_the_statements_before_it() {
        let page = "a\n```sql\nSELECT 1;\n```\n\n```text\n 1\n```\n```text\nx\n```\n```sql norun\nno\n```\n";
        let examples = parse(page);
        assert_eq!(examples.len(), 1);
        assert_eq!(examples[0].line, 2);
        assert_eq!(examples[0].output.as_deref(), Some(" 1\n"));
    }

    #[test]
    fn outputs_are_replaced_in_place() {
        let page = "```sql\nSELECT 1;\n```\n```text\nold\nold\n```\nend\n";
        let text = with_outputs(page, &parse(page), &["new \n\n".into()]);
        assert_eq!(text, "```sql\nSELECT 1;\n```\n```text\nnew\n```\nend\n");
    }

    #[test]
    fn a_sentence_parts_them() {
        let examples = parse("```sql\nSELECT 1;\n```\nand\n```text\n 1\n```\n");
        assert_eq!(examples[0].output, None);
    }
}
