-- Facts by which searches filter and order documents, without their titles and URLs.
CREATE INDEX search_documents_facts ON search_documents (id, source, points, comments, published_at);
