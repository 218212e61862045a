//! Bodies that kubectl 1.36 sent, and what they stand for.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// `kubectl create namespace shop`.
const NAMESPACE: &str = "6b3873000a0f0a02763112094e616d657370616365121c0a140a0473686f7012001a0022002a003200380042\
    0012001a020a001a002200";
/// `kubectl create deployment web --image=nginx --replicas=2 --port=80`.
const DEPLOYMENT: &str = "6b3873000a150a07617070732f7631120a4465706c6f796d656e7412b8010a1f0a0377656212001a0022002a\
    003200380042005a0a0a0361707012037765621286010802120c0a0a0a0361707012037765621a6c0a1c0a00\
    12001a0022002a003200380042005a0a0a036170701203776562124c122e0a056e67696e7812056e67696e78\
    2a00320a0a001000185022002a0042006a007200800100880100900100a201001a00320042004a0052005800\
    600068008201008a01009a0100c2010022020a00280038001a0c0800100018002000280038001a002200";
/// `kubectl create configmap bins --from-file=bin, with bytes that are not text`.
const CONFIG_MAP: &str = "6b3873000a0f0a0276311209436f6e6669674d617012220a140a0462696e7312001a0022002a003200380042\
    001a0a0a0362696e1203fffe001a002200";
/// `kubectl create secret generic s --from-literal=p=q`.
const SECRET: &str = "6b3873000a0c0a0276311206536563726574121d0a110a017312001a0022002a0032003800420012060a0170\
    1201711a001a002200";
/// `kubectl create job once --image=busybox -- sleep 5`.
const JOB: &str = "6b3873000a0f0a0862617463682f763112034a6f621288010a140a046f6e636512001a0022002a0032003800\
    4200126632640a100a0012001a0022002a003200380042001250122d0a046f6e6365120762757379626f781a\
    05736c6565701a01352a0042006a007200800100880100900100a201001a054e65766572320042004a005200\
    5800600068008201008a01009a0100c201001a082000280030003a001a002200";
/// `kubectl create service loadbalancer l --tcp=443:https`.
const SERVICE: &str = "6b3873000a0d0a027631120753657276696365126d0a1b0a016c12001a0022002a003200380042005a080a03\
    61707012016c124a0a220a093434332d6874747073120354435018bb03220b080110001a0568747470732800\
    12080a0361707012016c1a00220c4c6f616442616c616e6365723a00420052005a00600068001a020a001a00\
    2200";
/// `kubectl create pdb p --selector=app=web --min-available=50%`.
const BUDGET: &str = "6b3873000a200a09706f6c6963792f76311213506f6444697372757074696f6e427564676574123a0a110a01\
    7012001a0022002a0032003800420012190a09080110001a03353025120c0a0a0a0361707012037765621a0a\
    080018002000280030001a002200";
/// `kubectl create role r --verb=get,list --resource=pods,deployments.apps`.
const ROLE: &str = "6b3873000a240a1c726261632e617574686f72697a6174696f6e2e6b38732e696f2f76311204526f6c651248\
    0a110a017212001a0022002a0032003800420012130a036765740a046c69737412001a04706f6473121e0a03\
    6765740a046c6973741204617070731a0b6465706c6f796d656e74731a002200";
/// `kubectl create token bot --duration=10m`.
const TOKEN: &str = "6b3873000a280a1861757468656e7469636174696f6e2e6b38732e696f2f7631120c546f6b656e5265717565\
    7374121d0a100a0012001a0022002a00320038004200120320d8041a040a0012001a002200";
/// `kubectl auth can-i create pods`.
const CAN_I: &str = "6b3873000a320a17617574686f72697a6174696f6e2e6b38732e696f2f7631121753656c665375626a656374\
    416363657373526576696577123f0a100a0012001a0022002a0032003800420012210a1f0a0764656661756c\
    7412066372656174651a0022002a04706f647332003a001a08080012001a0020001a002200";
/// `kubectl autoscale deployment web --max=3 --cpu=50%`.
const AUTOSCALER: &str = "6b3873000a290a0e6175746f7363616c696e672f76321217486f72697a6f6e74616c506f644175746f736361\
    6c6572125f0a130a0377656212001a0022002a0032003800420012420a1a0a0a4465706c6f796d656e741203\
    7765621a07617070732f7631180322220a085265736f7572636522160a03637075120f0a0b5574696c697a61\
    74696f6e20321a04180020001a002200";

const ALL: &[&str] = &[
    NAMESPACE, DEPLOYMENT, CONFIG_MAP, SECRET, JOB, SERVICE, BUDGET, ROLE, TOKEN, CAN_I, AUTOSCALER,
];

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// The body of an object with this one message in it.
fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let length = u8::try_from(content.len()).unwrap();
        assert!(length < 128);
        [&[number << 3 | 2, length], content].concat()
    }
    let names = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [MAGIC.to_vec(), field(1, &names), field(2, raw)].concat()
}

#[test]
fn what_kubectl_creates() {
    let cases = [
        (
            NAMESPACE,
            json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"},
                "spec": {}, "status": {},
            }),
        ),
        (
            CONFIG_MAP,
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bins"},
                "binaryData": {"bin": "//4A"},
            }),
        ),
        (
            SECRET,
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"p": "cQ=="},
            }),
        ),
        (
            SERVICE,
            json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": {"name": "l", "labels": {"app": "l"}},
                "spec": {
                    "type": "LoadBalancer", "selector": {"app": "l"},
                    "ports": [{
                        "name": "443-https", "port": 443, "protocol": "TCP", "targetPort": "https",
                    }],
                },
                "status": {"loadBalancer": {}},
            }),
        ),
        (
            ROLE,
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"},
                "rules": [
                    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
                    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list"]},
                ],
            }),
        ),
        (
            CAN_I,
            json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "metadata": {},
                "spec": {"resourceAttributes": {
                    "namespace": "default", "resource": "pods", "verb": "create",
                }},
                "status": {"allowed": false},
            }),
        ),
    ];
    for (hex, expected) in cases {
        assert_eq!(decode(&bytes(hex)).unwrap(), expected);
    }
}

#[test]
fn what_kubectl_makes_of_workloads() {
    let deployment = decode(&bytes(DEPLOYMENT)).unwrap();
    assert_eq!(deployment["apiVersion"], "apps/v1");
    assert_eq!(deployment["spec"]["replicas"], 2);
    assert_eq!(
        deployment["spec"]["selector"],
        json!({"matchLabels": {"app": "web"}})
    );
    let template = &deployment["spec"]["template"];
    assert_eq!(template["metadata"], json!({"labels": {"app": "web"}}));
    assert_eq!(
        template["spec"]["containers"],
        json!([{
            "name": "nginx", "image": "nginx", "ports": [{"containerPort": 80}], "resources": {},
        }])
    );
    let job = decode(&bytes(JOB)).unwrap();
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(pod["restartPolicy"], "Never");
    assert_eq!(pod["containers"][0]["command"], json!(["sleep", "5"]));

    let budget = decode(&bytes(BUDGET)).unwrap();
    assert_eq!(budget["spec"]["minAvailable"], "50%");
    let token = decode(&bytes(TOKEN)).unwrap();
    assert_eq!(token["spec"]["expirationSeconds"], 600);
    let scaler = decode(&bytes(AUTOSCALER)).unwrap();
    let target = &scaler["spec"]["metrics"][0]["resource"]["target"];
    assert_eq!(
        target,
        &json!({"type": "Utilization", "averageUtilization": 50})
    );
}

#[test]
fn inlined_messages_times_and_amounts() {
    // A volume's source is a message of its own on the wire, but not in JSON.
    let size = [0x12, 5, 0x0a, 3, b'1', b'G', b'i'];
    let source = [&[0x12, 7][..], &size].concat();
    let volume = [&[0x0a, 1, b'v', 0x12, 9][..], &source].concat();
    let spec = [&[0x0a, 14][..], &volume].concat();
    let pod = [&[0x12, 16][..], &spec].concat();
    let pod = decode(&body("v1", "Pod", &pod)).unwrap();
    assert_eq!(
        pod["spec"]["volumes"],
        json!([{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}])
    );

    // renewTime of a lease: seconds and nanoseconds.
    let spec = [0x22, 5, 0x08, 1, 0x10, 0xe8, 0x07];
    let lease = [&[0x12, 7][..], &spec].concat();
    let lease = decode(&body("coordination.k8s.io/v1", "Lease", &lease)).unwrap();
    assert_eq!(lease["spec"]["renewTime"], "1970-01-01T00:00:01.000001Z");
}

#[test]
fn options_come_under_any_version() {
    let zero_grace = [0x08, 0x00, 0x22, 0x03, b'a', b'b', b'c'];
    for version in ["v1", "apps/v1", "meta.k8s.io/v1"] {
        assert_eq!(
            decode(&body(version, "DeleteOptions", &zero_grace)).unwrap(),
            json!({
                "apiVersion": version, "kind": "DeleteOptions",
                "gracePeriodSeconds": 0, "propagationPolicy": "abc",
            })
        );
    }
}

#[test]
fn unknown_fields_are_skipped() {
    let raw = [0xfa, 0x3f, 0x02, b'h', b'i', 0x12, 0x00];
    let namespace = decode(&body("v1", "Namespace", &raw)).unwrap();
    assert_eq!(namespace["spec"], json!({}));
}

#[test]
fn bad_bodies_are_refused() {
    for (body, why) in [
        (b"{}".to_vec(), "does not appear to be a protobuf"),
        (Vec::new(), "does not appear to be a protobuf"),
        (MAGIC.to_vec(), "empty body"),
        (
            body("v1", "Nope", b""),
            "no kind \"Nope\" is registered for version \"v1\"",
        ),
        (body("v7", "Pod", b""), "no kind \"Pod\""),
        (body("v1", "Pod", &[0x0a, 0x20]), "unexpected EOF"),
        (body("v1", "Pod", &[0x08, 0x01]), "a number where"),
        (
            body("v1", "Pod", &[0x12, 0x03, 0x52, 0x01, 0xff]),
            "not UTF-8",
        ),
    ] {
        let error = decode(&body).unwrap_err();
        assert!(error.why.contains(why), "{}", error.why);
    }
}

#[test]
fn every_prefix_is_refused_or_read() {
    for hex in ALL {
        let whole = bytes(hex);
        for length in 0..whole.len() {
            let _ = decode(&whole[..length]);
        }
        assert!(decode(&whole[..whole.len() - 3]).is_err());
    }
}

proptest! {
    #[test]
    fn no_bytes_do_harm(
        kind in prop::sample::select(vec![
            ("v1", "Pod"), ("apps/v1", "Deployment"), ("v1", "Secret"), ("v1", "Node"),
            ("authorization.k8s.io/v1", "SubjectAccessReview"), ("coordination.k8s.io/v1", "Lease"),
        ]),
        raw in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let _ = decode(&body(kind.0, kind.1, &raw));
    }

    #[test]
    fn no_change_does_harm(
        hex in prop::sample::select(ALL.to_vec()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut body = bytes(hex);
        for (at, byte) in changes {
            let at = at.index(body.len());
            body[at] = byte;
        }
        let _ = decode(&body);
    }
}
