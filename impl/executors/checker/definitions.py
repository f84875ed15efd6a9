"""What instrumented code calls: the runtime's functions, and the fast paths that are inlined where they stand."""

READ, WRITE, ATOMIC, UPDATE = 0, 1, 2, 4

DECLARATIONS = """
declare ptr @assay_access(ptr, i32, i32, i32) nounwind
declare ptr @assay_stray(ptr, i64, i64, i32, i32, i32, i32) nounwind cold
declare void @assay_component(i64, i32, i32, i32) nounwind cold
declare void @assay_unknown(i64, i32, i32, i32) nounwind cold
declare void @assay_shift(i64, i32, i32) nounwind cold
declare void @assay_tick(i32) nounwind cold
declare ptr @assay_check() nounwind willreturn memory(none)
declare void @assay_returns(i32) nounwind
declare i32 @assay_private_poison() nounwind willreturn memory(none)

define internal void @assay.turn(ptr %check, i32 %site) alwaysinline {
entry:
  %at = getelementptr i8, ptr %check, i64 16
  %before = load i64, ptr %at, align 8
  %now = add i64 %before, 1
  store i64 %now, ptr %at, align 8
  %low = and i64 %now, 65535
  %some = icmp eq i64 %low, 0
  br i1 %some, label %look, label %done
look:
  call void @assay_tick(i32 %site)
  br label %done
done:
  ret void
}

define internal ptr @assay.read(ptr %check, ptr %p, i32 %size, i32 %align, i32 %site) alwaysinline {
entry:
  %at = ptrtoint ptr %p to i64
  %base = load i64, ptr %check, align 8
  %shift.at = getelementptr i8, ptr %check, i64 8
  %shift = load i64, ptr %shift.at, align 8
  %away = sub i64 %at, %base
  %slot = lshr i64 %away, %shift
  %known = icmp ult i64 %slot, 64
  br i1 %known, label %look, label %ask
look:
  %row = shl i64 %slot, 4
  %begin.off = add i64 %row, 24
  %begin.at = getelementptr i8, ptr %check, i64 %begin.off
  %begin = load i64, ptr %begin.at, align 8
  %bytes.at = getelementptr i8, ptr %begin.at, i64 8
  %bytes = load i64, ptr %bytes.at, align 8
  %off = sub i64 %at, %begin
  %wide = zext i32 %size to i64
  %end = add i64 %off, %wide
  %starts = icmp ult i64 %off, %bytes
  %ends = icmp ule i64 %end, %bytes
  %inside = and i1 %starts, %ends
  %below = sub i32 %align, 1
  %mask = zext i32 %below to i64
  %astray = and i64 %at, %mask
  %straight = icmp eq i64 %astray, 0
  %ok = and i1 %inside, %straight
  br i1 %ok, label %done, label %ask
ask:
  %high = shl i32 %align, 8
  %q = call ptr @assay_access(ptr %p, i32 %size, i32 %high, i32 %site)
  br label %done
done:
  %r = phi ptr [ %p, %look ], [ %q, %ask ]
  ret ptr %r
}

define internal ptr @assay.inside(ptr %p, i64 %off, i64 %bytes, i32 %size, i32 %how, i32 %site, i32 %object)
    alwaysinline {
entry:
  %wide = zext i32 %size to i64
  %limit = sub i64 %bytes, %wide
  %within = icmp ule i64 %off, %limit
  %align = lshr i32 %how, 8
  %below = sub i32 %align, 1
  %mask = zext i32 %below to i64
  %astray = and i64 %off, %mask
  %straight = icmp eq i64 %astray, 0
  %ok = and i1 %within, %straight
  br i1 %ok, label %done, label %bad
bad:
  %q = call ptr @assay_stray(ptr %p, i64 %off, i64 %bytes, i32 %size, i32 %how, i32 %site, i32 %object)
  br label %done
done:
  %r = phi ptr [ %p, %entry ], [ %q, %bad ]
  ret ptr %r
}

define internal void @assay.component(i64 %number, i64 %count, i32 %size, i32 %site, i32 %object) alwaysinline {
entry:
  %ok = icmp ult i64 %number, %count
  br i1 %ok, label %done, label %bad
bad:
  %wide = zext i32 %size to i64
  %off = mul i64 %number, %wide
  call void @assay_component(i64 %off, i32 %size, i32 %site, i32 %object)
  br label %done
done:
  ret void
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

RUNTIME_FUNCTIONS = (
    *("assay_access", "assay_stray", "assay_unknown", "assay_shift", "assay_tick", "assay_returns"),
    *("assay_private_poison", "assay_check", "assay_component"),
)
