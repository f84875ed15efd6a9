"""Access at addresses that the type's alignment does not allow, where an NVIDIA GPU ends the whole process.

The host reads and writes whatever lies at the address, and so does this: an aligned address the quick way, any other
byte by byte. Where the compiler can tell the address's low bits, which is nearly everywhere, the question vanishes.
"""

import re

_TYPE = r"(?P<type>(?:<[^>\n]+>|(?!ptr|volatile|atomic)\w+))"
_PLACE = r"ptr addrspace\((?P<space>[134])\) (?P<at>%[\w.$]+), align (?P<bytes>2|4|8|16|32|64)\b.*$"
_LOAD = re.compile(rf"^(?P<to>  %[\w.$]+ = )load {_TYPE}, {_PLACE}", re.M)
_STORE = re.compile(rf"^  store {_TYPE} (?P<value>[^,\n]+(?:, [^,\n]+)*?), {_PLACE}", re.M)
_KINDS = re.compile(r"<(\d+) x (\w+)>")
_CHECK = """\
  %a = ptrtoint ptr addrspace({space}) %p to i64
  %m = and i64 %a, {mask}
  %is = icmp eq i64 %m, 0
  br i1 %is, label %aligned, label %apart
aligned:
"""
_FORMS = {
    "load": """\
define internal {type} @assay.load.{name}(ptr addrspace({space}) %p) alwaysinline {{
{check}  %v = load {type}, ptr addrspace({space}) %p, align {bytes}
  ret {type} %v
apart:
  %w = call {type} @assay.load.apart.{name}(ptr addrspace({space}) %p)
  ret {type} %w
}}
define internal {type} @assay.load.apart.{name}(ptr addrspace({space}) %p) {rare} memory(argmem: read) {{
  %v = load {type}, ptr addrspace({space}) %p, align 1
  ret {type} %v
}}
""",
    "store": """\
define internal void @assay.store.{name}({type} %v, ptr addrspace({space}) %p) alwaysinline {{
{check}  store {type} %v, ptr addrspace({space}) %p, align {bytes}
  ret void
apart:
  call void @assay.store.apart.{name}({type} %v, ptr addrspace({space}) %p)
  ret void
}}
define internal void @assay.store.apart.{name}({type} %v, ptr addrspace({space}) %p) {rare} memory(argmem: write) {{
  store {type} %v, ptr addrspace({space}) %p, align 1
  ret void
}}
""",
}


def unaligned(ir: str) -> str:
    """LLVM IR, not optimised yet, whose access to device, constant and threadgroup memory may stand anywhere.

    Volatile and atomic access keeps its alignment, and so do structs that are copied whole.
    """
    needed: dict[str, str] = {}

    def named(match: re.Match[str], access: str) -> str:
        kind = _KINDS.sub(r"v\1\2", match["type"])
        name = f"{kind}.{match['space']}.{match['bytes']}"
        told = {"name": name, "type": match["type"], "space": match["space"], "bytes": match["bytes"]}
        check = _CHECK.format(space=match["space"], mask=int(match["bytes"]) - 1)
        needed[f"{access}.{name}"] = _FORMS[access].format(check=check, rare="noinline nounwind willreturn", **told)
        return name

    def loaded(match: re.Match[str]) -> str:
        name = named(match, "load")
        return f"{match['to']}call {match['type']} @assay.load.{name}(ptr addrspace({match['space']}) {match['at']})"

    def stored(match: re.Match[str]) -> str:
        name = named(match, "store")
        pointer = f"ptr addrspace({match['space']}) {match['at']}"
        return f"  call void @assay.store.{name}({match['type']} {match['value']}, {pointer})"

    ir = _STORE.sub(stored, _LOAD.sub(loaded, ir))
    return "\n".join([ir, *needed.values()])
