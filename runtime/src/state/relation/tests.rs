//! Relations against a model, in every type; and the bytes of the storage format.

use std::collections::BTreeMap;

use datafusion::arrow::array::{ArrayRef, Int32Array, ListArray, StringArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::{
    DataType, Field, IntervalMonthDayNano, IntervalUnit, Schema, SchemaRef, TimeUnit, i256,
};
use plan::{Growth, RelationId, RelationKind};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::delta::rows::RowCodec;
use crate::state::memory::MemoryStore;
use crate::state::rocks::{RocksOptions, RocksStore};
use crate::state::store::{EpochBatch, Store, Sync};

fn list(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(item, true)))
}

fn every_type() -> Vec<DataType> {
    vec![
        DataType::Int64,
        DataType::Utf8,
        DataType::Boolean,
        DataType::Int16,
        DataType::Int32,
        DataType::Float32,
        DataType::Float64,
        DataType::Decimal128(10, 2),
        DataType::Decimal128(38, 16),
        DataType::Decimal256(76, 5),
        DataType::Binary,
        DataType::Date32,
        DataType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Interval(IntervalUnit::MonthDayNano),
        list(DataType::Int32),
        list(DataType::Utf8),
        list(DataType::Float64),
        list(list(DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())))),
    ]
}

fn random_scalar(random: &mut StdRng, data_type: &DataType) -> ScalarValue {
    if random.random_bool(0.15) {
        return ScalarValue::try_from(data_type).unwrap();
    }
    let small = random.random_range(-3..4_i64);
    let floats = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5, -2.25e-300];
    let float = floats[random.random_range(0..floats.len())];
    let texts = ["", "a", "ab", "ä\u{1F30A}", "with\0zero", "a text that is longer than a block of thirty-two bytes"];
    let text = texts[random.random_range(0..texts.len())].to_string();
    match data_type {
        DataType::Boolean => ScalarValue::Boolean(Some(small > 0)),
        DataType::Int16 => ScalarValue::Int16(Some(small as i16)),
        DataType::Int32 => ScalarValue::Int32(Some(small as i32)),
        DataType::Int64 => ScalarValue::Int64(Some(small.wrapping_mul(i64::MAX / 3))),
        DataType::Float32 => ScalarValue::Float32(Some(float as f32)),
        DataType::Float64 => ScalarValue::Float64(Some(float)),
        DataType::Decimal128(precision, scale) => ScalarValue::Decimal128(Some(small.into()), *precision, *scale),
        DataType::Decimal256(precision, scale) => {
            ScalarValue::Decimal256(Some(i256::from_i128(small.into())), *precision, *scale)
        }
        DataType::Utf8 => ScalarValue::Utf8(Some(text)),
        DataType::Binary => ScalarValue::Binary(Some(text.into_bytes())),
        DataType::Date32 => ScalarValue::Date32(Some(small as i32)),
        DataType::Time64(_) => ScalarValue::Time64Microsecond(Some(small + 3)),
        DataType::Timestamp(_, zone) => ScalarValue::TimestampMicrosecond(Some(small), zone.clone()),
        DataType::Interval(_) => ScalarValue::IntervalMonthDayNano(Some(
            [
                IntervalMonthDayNano::new(1, 0, 0),
                IntervalMonthDayNano::new(0, 30, 0),
                IntervalMonthDayNano::new(0, 0, 7),
            ][random.random_range(0..3)],
        )),
        other => panic!("no values of type {other}"),
    }
}

fn random_array(random: &mut StdRng, data_type: &DataType, rows: usize) -> ArrayRef {
    if let DataType::List(item) = data_type {
        let lengths: Vec<usize> = (0..rows).map(|_| random.random_range(0..4)).collect();
        let values = random_array(random, item.data_type(), lengths.iter().sum());
        let nulls = NullBuffer::from_iter((0..rows).map(|_| random.random_bool(0.85)));
        return Arc::new(ListArray::new(item.clone(), OffsetBuffer::from_lengths(lengths), values, Some(nulls)));
    }
    if rows == 0 {
        return datafusion::arrow::array::new_empty_array(data_type);
    }
    ScalarValue::iter_to_array((0..rows).map(|_| random_scalar(random, data_type))).unwrap()
}

fn schema_of(types: &[DataType]) -> SchemaRef {
    let field = |(index, data_type): (usize, &DataType)| Field::new(format!("c{index}"), data_type.clone(), true);
    Arc::new(Schema::new(types.iter().enumerate().map(field).collect::<Vec<_>>()))
}

fn random_batch(random: &mut StdRng, schema: &SchemaRef, rows: usize) -> RecordBatch {
    let columns = schema.fields().iter().map(|field| random_array(random, field.data_type(), rows)).collect();
    RecordBatch::try_new(schema.clone(), columns).unwrap()
}

fn storage(schema: &SchemaRef, layout: Layout) -> RelationStorage {
    RelationStorage::new(Arc::new(Relation {
        id: RelationId(100),
        name: "public.r".to_string(),
        kind: RelationKind::Table,
        schema: schema.clone(),
        layout,
        append_only: false,
        growth: Growth::Deletable,
        watermarks: Vec::new(),
    }))
    .unwrap()
}

struct TestStore {
    store: Arc<dyn Store>,
    epoch: u64,
    _folder: Option<tempfile::TempDir>,
}

impl TestStore {
    fn memory() -> Self {
        TestStore { store: MemoryStore::new(), epoch: 0, _folder: None }
    }

    fn rocks() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = RocksStore::open(folder.path(), RocksOptions { memory_bytes: 32 << 20 }).unwrap();
        TestStore { store, epoch: 0, _folder: Some(folder) }
    }

    fn commit(&mut self, writes: Vec<Write>) {
        self.epoch += 1;
        self.store.commit(&EpochBatch { epoch: self.epoch, writes, deleted_ranges: vec![] }, Sync::Later).unwrap();
    }

    fn scan(&self, storage: &RelationStorage, options: ScanOptions) -> Vec<Scanned> {
        storage.scan(self.store.snapshot(), options).map(Result::unwrap).collect()
    }
}

/// Rows as bytes, which are equal only if the rows are identical.
fn row_bytes(batch: &RecordBatch) -> Vec<Vec<u8>> {
    let codec = RowCodec::new(&batch.schema()).unwrap();
    let rows = codec.encode(batch).unwrap();
    rows.iter().map(<[u8]>::to_vec).collect()
}

fn sorted_rows<'a>(batches: impl IntoIterator<Item = &'a RecordBatch>) -> Vec<Vec<u8>> {
    let mut rows: Vec<Vec<u8>> = batches.into_iter().flat_map(row_bytes).collect();
    rows.sort();
    rows
}

/// Reads a relation in several scans, each of which goes on where the last one stopped.
fn scan_in_pieces(store: &TestStore, storage: &RelationStorage, options: &ScanOptions) -> Vec<Scanned> {
    let mut all: Vec<Scanned> = Vec::new();
    loop {
        let after = all.last().map(|scanned| scanned.last_key.clone());
        let piece = storage.scan(store.store.snapshot(), ScanOptions { after, ..options.clone() }).take(2);
        let piece: Vec<Scanned> = piece.map(Result::unwrap).collect();
        if piece.is_empty() {
            return all;
        }
        all.extend(piece);
    }
}

#[test]
fn keyed_rows_of_every_type() {
    let mut random = StdRng::seed_from_u64(3);
    let types = every_type();
    let schema = schema_of(&types);
    for (key, mut store) in [
        (vec![0], TestStore::memory()),
        (vec![1, 0], TestStore::rocks()),
        ((5..types.len()).collect(), TestStore::memory()),
        ((0..types.len()).rev().collect(), TestStore::rocks()),
    ] {
        let storage = storage(&schema, Layout::Keyed(key.clone()));
        assert_eq!(storage.key_columns(), key);
        let mut model: BTreeMap<Bytes, RecordBatch> = BTreeMap::new();
        for round in 0..6 {
            let batch = random_batch(&mut random, &schema, 200);
            let keys = storage.keys(&batch, None).unwrap();
            let (writes, rowids, used) = storage.insert(&batch, 7).unwrap();
            assert!(rowids.is_none() && used == 0);
            let last_of_key: BTreeMap<Bytes, Option<Bytes>> = writes.into_iter().collect();
            store.commit(last_of_key.into_iter().collect());
            for (row, key) in keys.into_iter().enumerate() {
                model.insert(key, batch.slice(row, 1));
            }
            if round % 2 == 1 {
                let gone: Vec<Bytes> = model.keys().filter(|_| random.random_bool(0.3)).cloned().collect();
                let rows: Vec<RecordBatch> = gone.iter().map(|key| model.remove(key).unwrap()).collect();
                let rows = compute::concat_batches(&schema, &rows).unwrap();
                store.commit(storage.delete(&*store.store.snapshot(), &rows, None).unwrap());
            }
            let scanned = scan_in_pieces(&store, &storage, &ScanOptions { batch_rows: 33, ..ScanOptions::default() });
            assert_eq!(sorted_rows(scanned.iter().map(|s| &s.batch)), sorted_rows(model.values()));
            check_projection(&store, &storage, &mut random);
            check_lookups(&store, &storage, &model, &key);
        }
    }
}

fn check_projection(store: &TestStore, storage: &RelationStorage, random: &mut StdRng) {
    let columns = storage.relation().schema.fields().len();
    let all = store.scan(storage, ScanOptions { batch_rows: 50, ..ScanOptions::default() });
    for width in [0, 1, 3] {
        let projection: Vec<usize> = (0..width).map(|_| random.random_range(0..columns)).collect();
        let options = ScanOptions {
            projection: Some(projection.clone()),
            batch_rows: 50,
            with_rowid: true,
            ..ScanOptions::default()
        };
        let projected = store.scan(storage, options);
        assert_eq!(projected.len(), all.len());
        for (projected, all) in projected.iter().zip(&all) {
            assert_eq!(projected.batch, all.batch.project(&projection).unwrap());
            assert_eq!(projected.rowids.as_ref().unwrap().len(), all.batch.num_rows());
            assert_eq!(projected.last_key, all.last_key);
        }
    }
}

fn check_lookups(store: &TestStore, storage: &RelationStorage, model: &BTreeMap<Bytes, RecordBatch>, key: &[usize]) {
    for row in model.values().step_by(7) {
        let values: Vec<ScalarValue> =
            key.iter().map(|column| ScalarValue::try_from_array(row.column(*column), 0).unwrap()).collect();
        let has_null = values.iter().any(ScalarValue::is_null);
        let found = store.scan(storage, ScanOptions { key_equals: Some(values), ..ScanOptions::default() });
        if has_null {
            assert!(found.is_empty(), "NULL equals nothing");
        } else {
            assert_eq!(sorted_rows(found.iter().map(|s| &s.batch)), row_bytes(row));
        }
    }
}

#[test]
fn look_ups_cast_only_what_fits() {
    let schema = schema_of(&[DataType::Int32]);
    let storage = storage(&schema, Layout::Keyed(vec![0]));
    let mut store = TestStore::memory();
    let batch = RecordBatch::try_new(schema, vec![Arc::new(Int32Array::from(vec![1, 2]))]).unwrap();
    store.commit(storage.insert(&batch, 0).unwrap().0);
    let count = |value: ScalarValue| {
        let found = store.scan(&storage, ScanOptions { key_equals: Some(vec![value]), ..ScanOptions::default() });
        found.iter().map(|scanned| scanned.batch.num_rows()).sum::<usize>()
    };
    assert_eq!(count(ScalarValue::Int64(Some(2))), 1);
    assert_eq!(count(ScalarValue::Int64(Some((1 << 32) + 2))), 0);
    assert_eq!(count(ScalarValue::Decimal128(Some(15), 3, 1)), 0);
    assert_eq!(count(ScalarValue::Decimal128(Some(20), 3, 1)), 1);
}

#[test]
fn numbered_rows_of_every_type() {
    let mut random = StdRng::seed_from_u64(4);
    let schema = schema_of(&every_type());
    for mut store in [TestStore::memory(), TestStore::rocks()] {
        let storage = storage(&schema, Layout::RowId);
        let mut model: BTreeMap<i64, Vec<u8>> = BTreeMap::new();
        let mut next_chunk = 5;
        for (round, rows) in [1, 3, 31, 32, 500, 1, 8_192, 8_200, 1, 2].into_iter().enumerate() {
            let batch = random_batch(&mut random, &schema, rows);
            let (writes, rowids, used) = storage.insert(&batch, next_chunk).unwrap();
            next_chunk += used;
            store.commit(writes);
            let rowids = rowids.unwrap();
            model.extend(rowids.values().iter().copied().zip(row_bytes(&batch)));
            if round % 2 == 1 {
                let share = [0.1, 0.7, 1.0][round / 2 % 3];
                let gone: Vec<i64> = model.keys().filter(|_| random.random_bool(share)).copied().collect();
                let gone = Int64Array::from(gone);
                let empty = RecordBatch::new_empty(schema.clone());
                let writes = storage.delete(&*store.store.snapshot(), &empty, Some(&gone)).unwrap();
                store.commit(writes);
                gone.values().iter().for_each(|rowid| assert!(model.remove(rowid).is_some()));
                // Deleting what is gone changes nothing.
                let again = storage.delete(&*store.store.snapshot(), &empty, Some(&gone)).unwrap();
                store.commit(again);
            }
            check_numbered(&store, &storage, &model, &mut random);
        }
    }
}

fn check_numbered(store: &TestStore, storage: &RelationStorage, model: &BTreeMap<i64, Vec<u8>>, random: &mut StdRng) {
    let options = ScanOptions { batch_rows: 700, with_rowid: true, ..ScanOptions::default() };
    let scanned = scan_in_pieces(store, storage, &options);
    let seen: Vec<(i64, Vec<u8>)> = scanned
        .iter()
        .flat_map(|s| s.rowids.as_ref().unwrap().values().to_vec().into_iter().zip(row_bytes(&s.batch)))
        .collect();
    let expected: Vec<(i64, Vec<u8>)> = model.iter().map(|(rowid, row)| (*rowid, row.clone())).collect();
    assert!(seen == expected, "rows in order of arrival");
    check_projection(store, storage, random);
    // A scan from the position of any row returns exactly the later ones.
    for rowid in model.keys().copied().step_by(1 + model.len() / 5) {
        let empty = RecordBatch::new_empty(storage.relation().schema.clone());
        let position = storage.keys(&empty, Some(&Int64Array::from(vec![rowid]))).unwrap().remove(0);
        let later = store.scan(storage, ScanOptions { after: Some(position), ..options.clone() });
        let later: Vec<i64> = later.iter().flat_map(|s| s.rowids.as_ref().unwrap().values().to_vec()).collect();
        let expected: Vec<i64> = model.range(rowid + 1..).map(|(rowid, _)| *rowid).collect();
        assert_eq!(later, expected);
    }
    // A row is at most at the end of the batch that it came in, and beyond that of the batch before.
    let mut before = Bytes::new();
    for batch in scanned {
        let keys = storage.keys(&batch.batch, batch.rowids.as_ref()).unwrap();
        assert!(keys.iter().all(|key| *key <= batch.last_key && *key > before));
        before = batch.last_key;
    }
}

#[test]
fn multisets_of_every_type() {
    let mut random = StdRng::seed_from_u64(5);
    for (types, mut store) in [(every_type(), TestStore::rocks()), (vec![DataType::Int16], TestStore::memory())] {
        let schema = schema_of(&types);
        let storage = storage(&schema, Layout::Multiset);
        let batch = random_batch(&mut random, &schema, 300);
        let mut counts: BTreeMap<(u16, Bytes), i64> = BTreeMap::new();
        let mut expected = Vec::new();
        for (row, key) in storage.encode_key(&batch).unwrap().into_iter().enumerate() {
            let copies = random.random_range(1..4);
            *counts.entry(key).or_default() += copies;
            expected.extend((0..copies).map(|_| batch.slice(row, 1)));
        }
        let writes = counts
            .into_iter()
            .map(|((partition, key), count)| (layout::store_key(100, partition, &key), Some(encode_count(count))));
        store.commit(writes.collect());
        let scanned = scan_in_pieces(&store, &storage, &ScanOptions { batch_rows: 40, ..ScanOptions::default() });
        assert_eq!(sorted_rows(scanned.iter().map(|s| &s.batch)), sorted_rows(&expected), "bit by bit");
        check_projection(&store, &storage, &mut random);
        let keys = storage.keys(&scanned[0].batch, None).unwrap();
        assert!(keys.iter().all(|key| *key <= scanned[0].last_key));
        assert!(storage.insert(&batch, 0).is_err());
    }
}

#[test]
fn damaged_values_are_errors() {
    let schema = schema_of(&[DataType::Int64, DataType::Utf8]);
    let storage = storage(&schema, Layout::RowId);
    let mut random = StdRng::seed_from_u64(6);
    for rows in [2, 100] {
        let value = storage.insert(&random_batch(&mut random, &schema, rows), 0).unwrap().0.remove(0).1.unwrap();
        for length in (0..value.len()).step_by(1 + value.len() / 200) {
            let mut store = TestStore::memory();
            store.commit(vec![(layout::store_key(100, 0, &0_u64.to_be_bytes()), Some(value.slice(..length)))]);
            assert!(storage.scan(store.store.snapshot(), ScanOptions::default()).any(|scanned| scanned.is_err()));
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// These bytes are in databases: when this test fails, the storage format has changed.
#[test]
fn golden_bytes() {
    let schema = schema_of(&[DataType::Int32, DataType::Utf8]);
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int32Array::from(vec![Some(1), Some(-1)])), Arc::new(StringArray::from(vec![Some("ab"), None]))];
    let batch = RecordBatch::try_new(schema.clone(), columns).unwrap();
    let keyed = storage(&schema, Layout::Keyed(vec![0])).insert(&batch, 0).unwrap().0;
    let entries: Vec<(String, String)> =
        keyed.iter().map(|(key, value)| (hex(key), hex(value.as_ref().unwrap()))).collect();
    assert_eq!(entries, GOLDEN_KEYED.map(|(key, value)| (key.to_string(), value.to_string())));

    let keys = storage(&schema, Layout::Multiset).keys(&batch, None).unwrap();
    assert_eq!(keys.iter().map(|key| hex(key)).collect::<Vec<_>>(), GOLDEN_MULTISET);
    assert_eq!(hex(&encode_count(3)), "0000000000000003");

    let numbered = storage(&schema, Layout::RowId);
    let (writes, rowids, used) = numbered.insert(&batch, 9).unwrap();
    assert_eq!((used, rowids.clone().unwrap().values().to_vec()), (1, vec![9 << 13, (9 << 13) + 1]));
    assert_eq!(hex(&writes[0].0), "0000006400000000000000000009");
    assert_eq!(hex(writes[0].1.as_ref().unwrap()), GOLDEN_ROWS);
    let positions = numbered.keys(&batch, rowids.as_ref()).unwrap();
    assert_eq!(hex(&positions[1]), "00000064000000000000000000090001");

    let mut store = TestStore::memory();
    store.commit(writes);
    let second = Int64Array::from(vec![(9 << 13) + 1]);
    let deletion = numbered.delete(&*store.store.snapshot(), &batch, Some(&second)).unwrap();
    assert_eq!(hex(&deletion[0].0), "0000006500000000000000000009");
    assert_eq!(hex(deletion[0].1.as_ref().unwrap()), "000202");

    let rows = RecordBatch::try_new(
        schema.clone(),
        vec![Arc::new(Int32Array::from_iter_values(0..40)), Arc::new(StringArray::from(vec!["x"; 40]))],
    )
    .unwrap();
    let chunk = numbered.insert(&rows, 1).unwrap().0.remove(0).1.unwrap();
    assert_eq!(hex(&chunk[..16]), GOLDEN_CHUNK_HEADER);
    assert_eq!((chunk.len(), xxhash_rust::xxh3::xxh3_64(&chunk)), GOLDEN_CHUNK);
}

const GOLDEN_KEYED: [(&str, &str); 2] =
    [("00000064034b0180000001", "02616200000000000002"), ("0000006401e2017fffffff", "00")];
const GOLDEN_MULTISET: [&str; 2] = ["0000006403f4018000000102616200000000000002", "00000064028a017fffffff00"];
const GOLDEN_ROWS: &str = "0200020000000f00000006018000000102616200000000000002017fffffff00";
const GOLDEN_CHUNK_HEADER: &str = "0100000000000028000000c800000180";
const GOLDEN_CHUNK: (usize, u64) = (608, 2_927_723_293_474_405_211);

#[test]
fn scans_can_be_sent_to_other_threads() {
    fn is_send<T: Send>() {}
    fn is_shared<T: Send + std::marker::Sync>() {}
    is_send::<RelationScan>();
    is_shared::<RelationStorage>();
}

fn numbers(range: std::ops::Range<i32>) -> RecordBatch {
    let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int32, false)]));
    RecordBatch::try_new(schema, vec![Arc::new(Int32Array::from_iter_values(range))]).unwrap()
}

fn is_near(approximate: u64, exact: u64) -> bool {
    approximate.abs_diff(exact) * 10 <= exact
}

#[test]
fn the_number_of_entries_is_known_by_a_tenth() {
    let storage = storage(&numbers(0..1).schema(), Layout::Keyed(vec![0]));
    let mut test = TestStore::memory();
    assert_eq!(storage.approximate_rows(test.store.snapshot().as_ref()).unwrap(), 0);
    test.commit(storage.insert(&numbers(0..3000), 0).unwrap().0);
    let count = storage.approximate_rows(test.store.snapshot().as_ref()).unwrap();
    assert_eq!(count, 3000, "small relations are counted");
    test.commit(storage.insert(&numbers(3000..60_000), 0).unwrap().0);
    let count = storage.approximate_rows(test.store.snapshot().as_ref()).unwrap();
    assert!(is_near(count, 60_000), "{count}");
}

#[test]
fn the_number_of_chunked_rows_is_known_by_a_tenth() {
    let storage = storage(&numbers(0..1).schema(), Layout::RowId);
    let mut test = TestStore::memory();
    assert_eq!(storage.approximate_rows(test.store.snapshot().as_ref()).unwrap(), 0);
    // A few large chunks, then many small ones, of which a third is deleted again.
    let mut next = 0;
    let (mut all, _, used) = storage.insert(&numbers(0..100_000), next).unwrap();
    next += used;
    for row in 0..3000 {
        let (writes, _, used) = storage.insert(&numbers(row..row + 2), next).unwrap();
        if row % 3 != 0 {
            all.extend(writes);
        }
        next += used;
    }
    test.commit(all);
    let count = storage.approximate_rows(test.store.snapshot().as_ref()).unwrap();
    assert!(is_near(count, 104_000), "{count}");
}
