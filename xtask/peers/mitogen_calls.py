"""Calls through local children of Mitogen, counted as mux-core's example `router_bench` counts them.

mitogen_calls.py call|many HOPS CHILDREN SECONDS

Prints one line of JSON.
"""

import json
import sys
import time

import mitogen
import mitogen.core
import mitogen.master


def answer(argument):
    return argument


def chain(router, hops):
    context = router.local(python_path=sys.executable)
    for _ in range(hops):
        context = router.local(via=context, python_path=sys.executable)
    return context


def one_caller(router, hops, seconds):
    context = chain(router, hops)
    context.call(answer, "sixteen bytes...")
    each, start = [], time.perf_counter()
    while time.perf_counter() - start < seconds:
        since = time.perf_counter()
        context.call(answer, "sixteen bytes...")
        each.append(time.perf_counter() - since)
    return len(each), time.perf_counter() - start, each


def many(router, children, seconds):
    contexts = [chain(router, 0) for _ in range(children)]
    for context in contexts:
        context.call(answer, "sixteen bytes...")
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        # One to each, then all answers: a Select costs more than it saves.
        receivers = [context.call_async(answer, "sixteen bytes...") for context in contexts]
        for receiver in receivers:
            receiver.get().unpickle()
        count += len(receivers)
    return count, time.perf_counter() - start, []


def main():
    what, hops, children, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    broker = mitogen.master.Broker()
    router = mitogen.master.Router(broker)
    try:
        if what == "many":
            count, took, each = many(router, children, seconds)
        else:
            count, took, each = one_caller(router, hops, seconds)
    finally:
        broker.shutdown()
        broker.join()
    each.sort()

    def quantile(percent):
        return each[(len(each) - 1) * percent // 100] * 1e6 if each else 0

    print(json.dumps({
        "what": what, "hops": hops, "count": count, "seconds": took, "per_second": count / took,
        "p50_us": quantile(50), "p99_us": quantile(99),
    }))


if __name__ == "__main__":
    main()
