import contextlib
def use(name): return contextlib.nullcontext()
def poison(pattern): return contextlib.nullcontext()
def current(): return "host"
def describe(name): return {"f32 denormals":"flushed"}
def metal_kernel(*a,**k): raise RuntimeError
