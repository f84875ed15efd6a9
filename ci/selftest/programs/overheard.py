"""A right program, which writes down what it reads and answers in the file that its command line names."""

import json
import sys

import mask


def main():
    with open(sys.argv[1], "w", encoding="utf-8") as log:
        for line in sys.stdin:
            log.write(f"→ {line}")
            log.flush()
            order = json.loads(line)
            if order["cmd"] == "stop":
                break
            told = mask.started(order["executor"]) if order["cmd"] == "start" else mask.answered(order)
            log.write(f"← {json.dumps(told)}\n")
            mask.say(told)


if __name__ == "__main__":
    main()
