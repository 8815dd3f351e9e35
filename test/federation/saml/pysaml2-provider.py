"""An identity provider of pysaml2 on loopback: FOLDER (keys, metadata, parties.json) PORT."""

import json
import sys
from functools import partial, partialmethod
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from saml2 import entity, sigver
from saml2 import BINDING_HTTP_POST, BINDING_HTTP_REDIRECT
from saml2.authn_context import PASSWORDPROTECTEDTRANSPORT
from saml2.config import IdPConfig
from saml2.metadata import entity_descriptor
from saml2.saml import NAMEID_FORMAT_PERSISTENT, NameID
from saml2.server import Server
from saml2.sigver import verify_redirect_signature
from saml2.xmldsig import DIGEST_SHA256, SIG_RSA_SHA256

# pysaml2 encrypts with Triple DES by default and has no setting for the algorithm.
AES_GCM = "http://www.w3.org/2009/xmlenc11#aes256-gcm"
entity.pre_encryption_part = partial(sigver.pre_encryption_part, msg_enc=AES_GCM)
sigver.SecurityContext.encrypt_assertion = partialmethod(sigver.SecurityContext.encrypt_assertion, key_type="aes-256")

folder, port = Path(sys.argv[1]), int(sys.argv[2])
origin = f"http://127.0.0.1:{port}"
parties = {party["entity_id"]: party for party in json.loads((folder / "parties.json").read_text())}
config = IdPConfig().load(
    {
        "entityid": f"{origin}/metadata",
        "key_file": str(folder / "idp.pem"),
        "cert_file": str(folder / "idp.crt"),
        "xmlsec_binary": "/usr/bin/xmlsec1",
        "service": {
            "idp": {
                "endpoints": {"single_sign_on_service": [(f"{origin}/sso", BINDING_HTTP_REDIRECT)]},
                "policy": {"default": {"lifetime": {"minutes": 5}, "name_form": "urn:oasis:names:tc:SAML:2.0:attrname-format:uri"}},
            }
        },
        "metadata": {"local": [str(folder / f"{party['alias']}.xml") for party in parties.values()]},
    }
)
server = Server(config=config)
identity = {"uid": "grace", "mail": "grace@upstream.example", "givenName": "Grace", "sn": "Hopper"}


def answer(query):
    message = {name: values[0] for name, values in query.items()}
    request = server.parse_authn_request(message["SAMLRequest"], BINDING_HTTP_REDIRECT)
    certificate, *_ = server.metadata.certs(request.message.issuer.text, "spsso", "signing")
    if not verify_redirect_signature(message, server.sec.sec_backend, certificate):
        raise ValueError("the request is not signed by the service provider")
    arguments = server.response_args(request.message)
    party = parties[arguments["sp_entity_id"]]
    response = server.create_authn_response(
        identity,
        **{name: value for name, value in arguments.items() if name not in ("name_id_policy", "binding")},
        name_id=NameID(format=NAMEID_FORMAT_PERSISTENT, text="grace-persistent-1"),
        authn={"class_ref": PASSWORDPROTECTEDTRANSPORT, "authn_auth": origin},
        sign_response=party["sign_response"],
        sign_assertion=party["sign_assertion"],
        encrypt_assertion=party["encrypt"],
        encrypt_assertion_self_contained=True,
        sign_alg=SIG_RSA_SHA256,
        digest_alg=DIGEST_SHA256,
    )
    form = server.apply_binding(
        BINDING_HTTP_POST, str(response), arguments["destination"], message["RelayState"], response=True
    )
    return form["data"]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        address = urlsplit(self.path)
        try:
            if address.path == "/metadata":
                status, body = 200, str(entity_descriptor(config))
            else:
                status, body = 200, answer(parse_qs(address.query))
        except Exception as error:
            status, body = 500, repr(error)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode() if isinstance(body, str) else body)

    def log_message(self, *_):
        pass


HTTPServer(("127.0.0.1", port), Handler).serve_forever()
