"""What instrumented code calls: the runtime's functions, and the fast paths that are inlined where they stand."""

READ, WRITE, ATOMIC, UPDATE = 0, 1, 2, 4

DECLARATIONS = """
declare ptr @assay_access(ptr, i32, i32, i32) nounwind
declare ptr @assay_stray(i64, i32, i32, i32, i32) nounwind cold
declare void @assay_unknown(i64, i32, i32, i32) nounwind cold
declare void @assay_shift(i64, i32, i32) nounwind cold
declare void @assay_tick(i32) nounwind
declare void @assay_returns(i32) nounwind
declare i32 @assay_private_poison() nounwind willreturn memory(none)

define internal ptr @assay.inside(ptr %p, i64 %off, i64 %bytes, i32 %size, i32 %how, i32 %site, i32 %object)
    alwaysinline {
entry:
  %wide = zext i32 %size to i64
  %limit = sub i64 %bytes, %wide
  %ok = icmp ule i64 %off, %limit
  br i1 %ok, label %done, label %bad
bad:
  %q = call ptr @assay_stray(i64 %off, i32 %size, i32 %how, i32 %site, i32 %object)
  br label %done
done:
  %r = phi ptr [ %p, %entry ], [ %q, %bad ]
  ret ptr %r
}

define internal void @assay.known(i1 %ok, i64 %off, i32 %size, i32 %site, i32 %object) alwaysinline {
entry:
  br i1 %ok, label %done, label %bad
bad:
  call void @assay_unknown(i64 %off, i32 %size, i32 %site, i32 %object)
  br label %done
done:
  ret void
}

define internal void @assay.width(i64 %count, i32 %width, i32 %site) alwaysinline {
entry:
  %wide = zext i32 %width to i64
  %ok = icmp ult i64 %count, %wide
  br i1 %ok, label %done, label %bad
bad:
  call void @assay_shift(i64 %count, i32 %width, i32 %site)
  br label %done
done:
  ret void
}
"""

RUNTIME_FUNCTIONS = ("assay_access", "assay_stray", "assay_unknown", "assay_shift", "assay_tick", "assay_returns")
