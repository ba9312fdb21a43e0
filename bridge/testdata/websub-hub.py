"""A WebSub hub by Flask-WebSub, with Celery's broker in memory, at a port if one is given. It prints its port, and ends with its input."""
import os, sys, threading

from celery import Celery
from celery.contrib.testing.worker import start_worker
from flask import Flask
from flask_websub.hub import Hub, SQLite3HubStorage
from werkzeug.serving import make_server

celery = Celery("hub", broker="memory://", backend="cache+memory://")
app = Flask("hub")
app.config.update(PUBLISH_SUPPORTED=True)
hub = Hub(SQLite3HubStorage(sys.argv[1]), celery)
app.register_blueprint(hub.build_blueprint(url_prefix="/hub"))
server = make_server("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0, app, threaded=True)
with start_worker(celery, pool="solo", perform_ping_check=False):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.port, flush=True)
    sys.stdin.read()
    os._exit(0)
