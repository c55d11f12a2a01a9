//! Tests of COPY's reader and writer on strings.

use super::*;
use bytes::BytesMut;
use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::arrow::util::pretty::pretty_format_batches;
use plan::{Growth, Layout, Relation, RelationId, RelationKind};
use planner::catalog::ColumnInfo;
use planner::statement::CopyOptions;

use crate::pgwire::encode;
use crate::pgwire::text::TextStyle;
use crate::session::timezone::TimeZone;

fn options(format: CopyFormat) -> CopyOptions {
    let csv = is_csv(format);
    CopyOptions {
        format,
        header: false,
        delimiter: if csv { b',' } else { b'\t' },
        null: if csv { String::new() } else { "\\N".to_owned() },
        quote: b'"',
        escape: b'"',
        force_quote: None,
    }
}

fn table(types: &[DataType]) -> Arc<TableInfo> {
    let fields: Vec<Field> =
        types.iter().enumerate().map(|(index, of)| Field::new(format!("c{index}"), of.clone(), true)).collect();
    let columns =
        fields.iter().map(|field| ColumnInfo { name: field.name().clone(), default: None, not_null: false }).collect();
    let relation = Relation {
        id: RelationId(100),
        name: "public.t".to_owned(),
        kind: RelationKind::Table,
        schema: Arc::new(Schema::new(fields)),
        layout: Layout::RowId,
        append_only: false,
        growth: Growth::Deletable,
        watermarks: Vec::new(),
    };
    Arc::new(TableInfo { relation: Arc::new(relation), columns, primary_key: Vec::new() })
}

fn reader(types: &[DataType], options: &CopyOptions) -> CopyReader {
    let table = table(types);
    let inputs = table
        .relation
        .schema
        .fields()
        .iter()
        .map(|field| ColumnInput::new(field, BATCH_ROWS, TimeZone::UTC).unwrap())
        .collect();
    CopyReader {
        name: "t".to_owned(),
        columns: (0..types.len()).collect(),
        inputs,
        defaults: Vec::new(),
        cutter: Cutter::new(options),
        rest: Vec::new(),
        full: Vec::new(),
        pending: 0,
        rows: 0,
        line: 1,
        header: options.header,
        ended: false,
        retry_bytes: 0,
        not_null: vec![false; types.len()],
        table,
    }
}

/// Reads the data in pieces of every size and expects the same rows; returns them as COPY would write them.
fn round_trip(types: &[DataType], options: &CopyOptions, data: &str) -> Result<String> {
    let mut results = Vec::new();
    for size in [1, 2, 3, 7, data.len().max(1)] {
        let mut reader = reader(types, options);
        let mut batches = Vec::new();
        let mut read = || -> Result<()> {
            for piece in data.as_bytes().chunks(size) {
                reader.push(piece)?;
            }
            reader.end()?;
            while let Some(batch) = reader.take_batch(true)? {
                batches.push(batch);
            }
            Ok(())
        };
        results.push(read().map(|()| {
            let mut out = BytesMut::new();
            let mut writer = LineWriter::new(options);
            for batch in &batches {
                let columns = encode::columns(batch, batch.schema_ref()).unwrap();
                (0..batch.num_rows()).for_each(|row| writer.row(&columns, row, &TextStyle::default(), &mut out));
            }
            assert!(batches.is_empty() || pretty_format_batches(&batches).is_ok());
            String::from_utf8(out.to_vec()).unwrap()
        }));
    }
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "{results:?}");
    results.pop().unwrap()
}

#[test]
fn text_format() {
    let types = [DataType::Int32, DataType::Utf8];
    let read = |data: &str| round_trip(&types, &options(CopyFormat::Text), data);
    assert_eq!(read("1\ta\\tb\n2\t\\N\n3\t\n").unwrap(), "1\ta\\tb\n2\t\\N\n3\t\n");
    assert_eq!(read("4\tback\\\\slash\\nline\n").unwrap(), "4\tback\\\\slash\\nline\n");
    assert_eq!(read("5\tx\\101\\x42\n\\.\nignored").unwrap(), "5\txAB\n");
    assert_eq!(read("6\tno newline").unwrap(), "6\tno newline\n");
    assert_eq!(read("7\twindows\r\n8\tlines\r\n").unwrap(), "7\twindows\n8\tlines\n");
    assert_eq!(read("9\tescaped\\\nnewline\n").unwrap(), "9\tescaped\\nnewline\n");
    assert_eq!(read("").unwrap(), "");
    let custom = CopyOptions { delimiter: b';', null: String::new(), ..options(CopyFormat::Text) };
    assert_eq!(round_trip(&types, &custom, "1;\n;x\n3;\\N\n").unwrap(), "1;\n;x\n3;N\n");
}

#[test]
fn csv_format() {
    let types = [DataType::Int32, DataType::Utf8];
    let read = |data: &str| round_trip(&types, &options(CopyFormat::Csv), data);
    assert_eq!(read("1,a\n2,\n3,\"\"\n").unwrap(), "1,a\n2,\n3,\"\"\n");
    assert_eq!(read("1,\"a,b\"\"c\"\n2,\"two\nlines\"\n").unwrap(), "1,\"a,b\"\"c\"\n2,\"two\nlines\"\n");
    assert_eq!(read("1,a\"b,c\"d\n").unwrap(), "1,\"ab,cd\"\n");
    let header = CopyOptions { header: true, ..options(CopyFormat::Csv) };
    assert_eq!(round_trip(&types, &header, "id,name\n1,a\n").unwrap(), "1,a\n");
    assert_eq!(read("1,\"open\n").unwrap_err().message, "unterminated CSV quoted field");
    let escape = CopyOptions { escape: b'\\', ..options(CopyFormat::Csv) };
    assert_eq!(round_trip(&types, &escape, "1,\"a\\\"b\"\n").unwrap(), "1,\"a\\\"b\"\n");
}

#[test]
fn errors_name_line_and_column() {
    let types = [DataType::Int32, DataType::Int32];
    let read = |data: &str| round_trip(&types, &options(CopyFormat::Csv), data).unwrap_err();
    let error = read("1,2\n3,x\n");
    assert_eq!(error.message, "invalid input syntax for type integer: \"x\"");
    assert_eq!(error.context.as_deref(), Some("COPY t, line 2, column c1: \"x\""));
    let error = read("1,2\n3,4,5\n");
    assert_eq!(error.message, "extra data after last expected column");
    assert_eq!(error.context.as_deref(), Some("COPY t, line 2: \"3,4,5\""));
    let error = read("1\n");
    assert_eq!(error.message, "missing data for column \"c1\"");
    assert_eq!(error.sqlstate, SqlState::BAD_COPY_FILE_FORMAT);
}

#[test]
fn many_rows_come_in_batches() {
    let mut reader = reader(&[DataType::Int64], &options(CopyFormat::Text));
    let mut rows = 0;
    for start in (0..20_000).step_by(100) {
        let lines: String = (start..start + 100).map(|number| format!("{number}\n")).collect();
        reader.push(lines.as_bytes()).unwrap();
        while let Some(batch) = reader.take_batch(false).unwrap() {
            assert_eq!(batch.num_rows(), BATCH_ROWS);
            rows += batch.num_rows();
        }
    }
    reader.end().unwrap();
    while let Some(batch) = reader.take_batch(true).unwrap() {
        rows += batch.num_rows();
    }
    assert_eq!((rows, reader.rows()), (20_000, 20_000));
}

/// Prints how fast rows like those of the flights example are read: `cargo test --release -p server copy_speed --
/// --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn copy_speed() {
    let mut types = vec![DataType::Int32; 14];
    types.extend([DataType::Utf8, DataType::Utf8, DataType::Utf8, DataType::Utf8]);
    types.push(DataType::Timestamp(TimeUnit::Microsecond, None));
    let line = "2013,1,1,517,515,2,830,819,11,1545,227,1400,5,15,UA,N14228,EWR,IAH,2013-01-01 05:00:00\n";
    let data = line.repeat(100_000);
    let start = runtime::clock::monotonic();
    let mut reader = reader(&types, &options(CopyFormat::Csv));
    for piece in data.as_bytes().chunks(8192) {
        reader.push(piece).unwrap();
        while reader.take_batch(false).unwrap().is_some() {}
    }
    let seconds = runtime::clock::elapsed(start).as_secs_f64();
    println!("{:.0} rows/s", 100_000.0 / seconds);
}
