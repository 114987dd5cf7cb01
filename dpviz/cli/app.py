"""`dpviz app`: starts the app; what is meant without a command."""

import argparse

from dpviz.cli.parser import Parser
from dpviz.common.validate import check_integer, number_from_text

HELP = "start the app in the browser (the default)"


def add(parser: Parser) -> None:
    """Adds the options."""
    parser.add_argument("--port", help="port to listen on (8501, or the next free one)")
    parser.add_argument("--host", default=None, help="address to listen on (127.0.0.1: this machine only; 0.0.0.0: all machines)")
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="a further name to answer to, as behind a proxy"
    )
    parser.add_argument(
        "--frame-ancestors", action="append", default=[], metavar="ORIGIN", help="a site that may show the app in a frame"
    )
    parser.add_argument("--base-path", default="", metavar="PATH", help="path below which the app lies behind a proxy")
    parser.add_argument("--demo", action="store_true", help="for a public server: no uploads, no downloads, no data folder")
    parser.add_argument(
        "--qr",
        nargs="?",
        const="",
        metavar="ADDRESS",
        help="print the address for a class as a QR code, or that of the proxy in front (needs segno)",
    )
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser window")


def run(options: argparse.Namespace) -> None:
    """Serves the app until it is stopped."""
    from dpviz.cli.main import app_script
    from dpviz.dashboard.frame.server import serve  # slow to import, and not needed by the other commands

    port = None if options.port is None else check_integer("--port", number_from_text("--port", options.port), 1, 65535)
    serve(
        app_script(),
        port,
        options.host,
        browser=not options.no_browser,
        allowed=options.allow_host,
        ancestors=options.frame_ancestors,
        base_path=options.base_path,
        demo=options.demo,
        qr=options.qr,
    )
