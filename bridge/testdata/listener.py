"""Prints what websockets hears on a channel, a line for each line of a message; at first "open"."""
import sys
from websockets.sync.client import connect

with connect(sys.argv[1]) as channel:
    print("open", flush=True)
    for message in channel:
        print(message, flush=True)
