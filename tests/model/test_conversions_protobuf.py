"""Messages of .proto files as schemas."""

import pytest

from lumos.model.conversions.protobuf import messages_from_protobuf
from lumos.model.types import SchemaSyntaxError

ORDER = """// An order.
syntax = "proto3";
package shop.v1;
import "google/protobuf/timestamp.proto";
message Order {
  reserved 9;
  int64 id = 1;
  repeated Line lines = 2;
  google.protobuf.Timestamp at = 3;
  Status status = 4;
  map<string, Line> by_sku = 5;
  oneof who { string user = 6; other.Bot bot = 7; }
  optional Order parent = 8;
  enum Status { NEW = 0; PAID = 1; }
  message Line { string sku = 1; uint32 count = 2; }
}
service Orders { rpc Get(Order) returns (Order); }
"""


def test_a_message_is_a_schema() -> None:
    (order,) = messages_from_protobuf(ORDER)
    assert order.name == "shop.v1.Order"
    assert str(order.schema).splitlines() == [
        "id INT64",
        "lines ARRAY<STRUCT<sku: STRING, count: UINT32> NOT NULL>",
        "at TIMESTAMPTZ(ns)",
        "status ENUM('NEW','PAID')",
        "by_sku MAP<STRING, STRUCT<sku: STRING, count: UINT32> NOT NULL>",
        "user STRING",
        "bot UNKNOWN('ref:other.Bot')",
        "parent UNKNOWN('recursive:shop.v1.Order')",
    ]
    assert [field.field_id for field in order.schema.fields] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_proto2_has_required_fields_and_groups() -> None:
    (message,) = messages_from_protobuf(
        'syntax = "proto2"; message A { required int32 a = 1; optional group G = 2 '
        "{ optional bool b = 3; } }"
    )
    assert str(message.schema).splitlines() == ["a INT32 NOT NULL", "G STRUCT<b: BOOLEAN>"]


def test_messages_that_refer_to_each_other_end() -> None:
    names = [f"M{number}" for number in range(30)]
    text = "".join(
        f"message {name} {{ {' '.join(f'{other} f{at} = {at + 1};' for at, other in enumerate(names))} }}\n"
        for name in names[:6]
    )
    assert len(messages_from_protobuf(text)) == 6


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [("message {", 1, 9), ("message A {\n int32 a = ;\n}", 2, 12), ("message A {" * 100, 1, 1)],
)
def test_a_file_that_is_not_valid_has_a_position(text: str, line: int, column: int) -> None:
    with pytest.raises(SchemaSyntaxError) as raised:
        messages_from_protobuf(text)
    assert (raised.value.line, raised.value.column) == (line, column)
