use super::*;
use crate::vpa::histogram::EPSILON;

const HALF_LIFE: i64 = DAY;

fn cpu() -> Histogram {
    Histogram::new(Resource::Cpu, SignedDuration::from_secs(HALF_LIFE))
}

/// A value in the middle of a bucket.
fn middle(bucket: usize) -> f64 {
    let empty = cpu();
    f64::midpoint(empty.start(bucket), empty.start(bucket + 1))
}

fn filled(weights: &[(usize, f64)]) -> Histogram {
    let mut histogram = cpu();
    for (bucket, weight) in weights {
        histogram.add(middle(*bucket), *weight, at(0));
    }
    histogram
}

/// The bucket whose end a percentile is.
fn bucket_of(histogram: &Histogram, share: f64) -> usize {
    let value = histogram.percentile(share);
    let found = (0..N_BUCKETS).find(|bucket| histogram.start(bucket + 1) == value);
    found.unwrap_or_else(|| panic!("{value} is no end of a bucket"))
}

#[test]
fn buckets_cover_a_thousand_cores_and_a_terabyte() {
    let memory = Histogram::new(Resource::Memory, SignedDuration::from_secs(HALF_LIFE));
    let (cores, bytes) = (cpu().start(N_BUCKETS - 1), memory.start(N_BUCKETS - 1));
    assert!((1000.0..1050.0).contains(&cores), "{cores}");
    assert!((1e12..1.05e12).contains(&bytes), "{bytes}");
    for bucket in 0..N_BUCKETS - 1 {
        assert_eq!(cpu().bucket(middle(bucket)), bucket);
    }
    assert_eq!(cpu().bucket(1e9), N_BUCKETS - 1);
}

#[test]
fn vpa_1_an_empty_histogram_has_no_percentiles() {
    for share in [-0.1, 0.0, 0.5, 1.0, 1.1] {
        assert_eq!(cpu().percentile(share), 0.0);
    }
}

#[test]
fn vpa_2_percentiles_are_ends_of_buckets() {
    let histogram = filled(&[(1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0)]);
    for (share, bucket) in [
        (0.0, 1),
        (0.1, 1),
        (0.2, 2),
        (0.3, 2),
        (0.4, 3),
        (0.6, 3),
        (0.7, 4),
        (1.0, 4),
    ] {
        assert_eq!(bucket_of(&histogram, share), bucket, "{share}");
    }
}

#[test]
fn vpa_3_shares_out_of_range_are_the_ends() {
    let histogram = filled(&[(1, 1.0), (4, 4.0)]);
    assert_eq!(bucket_of(&histogram, -0.1), 1);
    assert_eq!(bucket_of(&histogram, 1.1), 4);
}

#[test]
fn vpa_4_the_last_bucket_has_no_end() {
    let mut histogram = cpu();
    histogram.add(5000.0, 1.0, at(0));
    assert_eq!(histogram.percentile(0.5), histogram.start(N_BUCKETS - 1));
}

#[test]
fn vpa_5_what_is_hardly_anything_is_nothing() {
    let mut histogram = filled(&[(3, 2.5 * EPSILON)]);
    assert!(!histogram.is_empty());
    histogram.subtract(middle(3), 2.0 * EPSILON, at(0));
    assert!(histogram.is_empty());
}

#[test]
fn vpa_6_hardly_anything_below_does_not_hide_the_rest() {
    let mut histogram = filled(&[(9, 1.0)]);
    histogram.add(middle(2), 0.5 * EPSILON, at(0));
    assert!(!histogram.is_empty());
    assert_eq!(bucket_of(&histogram, 0.5), 9);
}

#[test]
fn vpa_7_merging_is_adding_all_samples() {
    let (mut a, mut b) = (filled(&[(1, 1.0), (5, 2.0)]), filled(&[(3, 1.0), (5, 4.0)]));
    a.merge(&mut b);
    let all = filled(&[(1, 1.0), (5, 2.0), (3, 1.0), (5, 4.0)]);
    assert_eq!(a, all);
}

#[test]
fn vpa_8_a_single_sample_weighs_most_in_a_checkpoint() {
    let checkpoint = filled(&[(7, 1.0)]).to_checkpoint();
    assert_eq!(checkpoint["bucketWeights"], json!({"7": 10000}));
    assert_eq!(checkpoint["totalWeight"], 1.0);
}

#[test]
fn vpa_9_what_rounds_to_nothing_is_left_out_of_buckets() {
    let checkpoint = filled(&[(7, 100_000.0), (8, 4.0)]).to_checkpoint();
    assert_eq!(checkpoint["bucketWeights"], json!({"7": 10000}));
    assert_eq!(checkpoint["totalWeight"], 100_004.0);
}

#[test]
fn vpa_10_others_keep_their_share() {
    let checkpoint = filled(&[(1, 1.0), (2, 10_000.0), (3, 50.0)]).to_checkpoint();
    assert_eq!(
        checkpoint["bucketWeights"],
        json!({"1": 1, "2": 10000, "3": 50})
    );
    assert_eq!(checkpoint["totalWeight"], 10_051.0);
}

fn status(cpu: Value) -> Value {
    json!({"version": "v3", "cpuHistogram": cpu, "memoryHistogram": {}})
}

fn load(status: &Value) -> Result<Aggregate, String> {
    let loaded = Aggregate::of_checkpoint(status, &Settings::default(), at(0));
    loaded.map_err(|error| error.to_string())
}

#[test]
fn vpa_11_shares_are_turned_into_weights() {
    let loaded = load(&status(
        json!({"bucketWeights": {"0": 1, "1": 2}, "totalWeight": 6.0}),
    ));
    let histogram = loaded.unwrap().cpu;
    assert_eq!(histogram.weights[..3], [2.0, 4.0, 0.0]);
    assert_eq!((histogram.least, histogram.most), (0, 1));
}

#[test]
fn vpa_12_checkpoints_that_cannot_be() {
    for (histogram, why) in [
        (
            json!({"bucketWeights": {"-1": 1}, "totalWeight": 1.0}),
            "\"-1\" is no bucket",
        ),
        (
            json!({"bucketWeights": {"176": 1}, "totalWeight": 1.0}),
            "\"176\" is no bucket",
        ),
        (
            json!({"bucketWeights": {"0": 1}, "totalWeight": -1.0}),
            "cpuHistogram.totalWeight: must be",
        ),
        (
            json!({"bucketWeights": {"0": -1}, "totalWeight": 1.0}),
            "must be a weight of 32 bits",
        ),
        (Value::Null, "cpuHistogram: is missing"),
    ] {
        let error = load(&status(histogram)).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn vpa_13_weights_at_the_edge_of_nothing_survive() {
    let histogram = filled(&[(3, 1.01 * EPSILON)]);
    let loaded = load(&status(histogram.to_checkpoint())).unwrap().cpu;
    assert!(!loaded.is_empty());
    assert_eq!(bucket_of(&loaded, 0.5), 3);
}

#[test]
fn vpa_14_newer_samples_weigh_more() {
    let mut histogram = cpu();
    histogram.add(middle(2), 1000.0, at(0));
    histogram.add(middle(1), 1.0, at(20 * HALF_LIFE));
    assert_eq!(bucket_of(&histogram, 0.999), 1);
    assert_eq!(bucket_of(&histogram, 1.0), 2);
}

#[test]
fn vpa_15_after_a_hundred_half_lives_nothing_is_left() {
    let mut histogram = cpu();
    histogram.add(middle(2), 1000.0, at(0));
    histogram.add(middle(1), 1.0, at(101 * HALF_LIFE));
    assert_eq!(bucket_of(&histogram, 1.0), 1);
}

#[test]
fn vpa_16_each_half_life_halves() {
    let mut histogram = cpu();
    for bucket in 1..=4 {
        let days = i64::try_from(bucket).unwrap();
        histogram.add(middle(bucket), bucket as f64, at(days * HALF_LIFE));
    }
    let share = |bucket: usize| histogram.weights[bucket] / histogram.total;
    for (bucket, percent) in [(1, 2.0), (2, 8.0), (3, 24.0), (4, 65.0)] {
        let found = share(bucket) * 100.0;
        assert!((found - percent).abs() < 1.0, "{bucket}: {found}");
    }
}

#[test]
fn vpa_17_histograms_of_different_times_are_merged_either_way() {
    let of = |bucket, time| {
        let mut histogram = cpu();
        histogram.add(middle(bucket), 1.0, time);
        histogram
    };
    let (old, new) = (|| of(1, at(0)), || of(2, at(150 * HALF_LIFE)));
    let merged = |mut a: Histogram, mut b: Histogram| {
        a.merge(&mut b);
        a
    };
    let (a, b) = (merged(old(), new()), merged(new(), old()));
    assert_eq!((a.reference, a.total), (b.reference, b.total));
    assert_eq!((bucket_of(&a, 1.0), bucket_of(&b, 1.0)), (2, 2));
    let near = || of(2, at(3 * HALF_LIFE));
    let (a, b) = (merged(old(), near()), merged(near(), old()));
    assert!((a.weights[1] / a.weights[2] - 0.125).abs() < 1e-12);
    assert!((b.weights[1] / b.weights[2] - 0.125).abs() < 1e-12);
}

#[test]
fn vpa_18_checkpoints_carry_the_reference_time() {
    let histogram = filled(&[(3, 1.0)]);
    let checkpoint = histogram.to_checkpoint();
    assert_eq!(checkpoint["referenceTimestamp"], at(0).to_string());
    let loaded = load(&status(checkpoint)).unwrap().cpu;
    assert_eq!(loaded.reference, Some(at(0)));
    assert_eq!(loaded, histogram);
}

#[test]
fn vpa_50_other_formats_are_refused() {
    let mut other = status(json!({}));
    other["version"] = json!("v2");
    assert_eq!(load(&other).unwrap_err(), "version: must be v3, not \"v2\"");
}
