"""The catalogue, written out for others: JSON Schema, AsyncAPI and a table of subjects. Pure and deterministic."""

from schemas.export.asyncapi import asyncapi_document
from schemas.export.jsonschema import jsonschema_document
from schemas.export.table import subjects_rows, subjects_table

__all__ = ["asyncapi_document", "jsonschema_document", "subjects_rows", "subjects_table"]
