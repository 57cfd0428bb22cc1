// Made by packages/client-ts/generate.py from the server's OpenAPI; not to be changed by hand.
export interface paths {
    "/v0/remember": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Keep a memory. */
        post: operations["remember"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/remember/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Keep many, each with its own outcome. */
        post: operations["remember_batch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/recall": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Find memories; one a line when Accept says application/x-ndjson. */
        post: operations["recall"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/forget": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Hide memories, or erase them. */
        post: operations["forget"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/merge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Make one memory of several. */
        post: operations["merge"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/expire": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Forget, archive or demote what a policy says. */
        post: operations["expire"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/undo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Take back what was done to memories, or by a run of a job. */
        post: operations["undo"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/preview/forget": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** What the forget would touch; nothing is changed. */
        post: operations["preview_forget"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/preview/merge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** What the merge would touch; nothing is changed. */
        post: operations["preview_merge"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/preview/expire": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** What the expire would touch; nothing is changed. */
        post: operations["preview_expire"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/memories": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A page of an agent's memories, newest first. */
        get: operations["list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/memories/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One memory. */
        get: operations["get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Change a memory; the version before is kept. */
        patch: operations["update"];
        trace?: never;
    };
    "/v0/memories/{id}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every version of a memory, oldest first. */
        get: operations["history"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/procedures/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Where a procedure stands and what can be fired. */
        get: operations["procedure_show"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/procedures/{id}/draw": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A procedure as SVG or Mermaid. */
        get: operations["procedure_draw"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/procedures/{id}/fire": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Move a procedure by a trigger. */
        post: operations["procedure_fire"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/procedures/{id}/reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Put a procedure back to where it starts. */
        post: operations["procedure_reset"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/reviews": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Requests that wait for a person, or waited. */
        get: operations["reviews"];
        put?: never;
        /** The same decision about many, each with its own outcome. */
        post: operations["decide_many"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/reviews/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One review. */
        get: operations["review"];
        put?: never;
        /** Approve, reject, or approve as edited. */
        post: operations["decide"];
        delete?: never;
        options?: never;
        head?: never;
        /** Ask for something else instead; it goes on waiting. */
        patch: operations["edit_review"];
        trace?: never;
    };
    "/v0/policies": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The rules in force. */
        get: operations["policies"];
        /** Replace the tenant's own rules. */
        put: operations["set_policies"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/policies/dry-run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** What rules would have caught. */
        post: operations["try_policies"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/policies/learned": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What reviewers always approve. */
        get: operations["learned_policies"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/policies/learned/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Take back what was learned. */
        delete: operations["revoke_learned"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A page of the audit trail, oldest first. */
        get: operations["audit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/audit/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether the audit chain is whole. */
        get: operations["verify_audit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/audit/head": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How many entries there are and their Merkle root, signed. */
        get: operations["audit_head"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/audit/proof": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The proof that an entry is in the tree. */
        get: operations["audit_proof"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/audit/consistency": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The proof that a tree is the beginning of a later one. */
        get: operations["audit_consistency"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/audit/key": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The public key of what is signed. */
        get: operations["audit_key"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/recover": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Take back what came from a bad source, and what was made from it. */
        post: operations["recover"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether the server can work. */
        get: operations["health"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the caller may see of the store. */
        get: operations["status"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/stores": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The stores, and what waits for each. */
        get: operations["stores"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/lifecycle": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The jobs that look after memories, and what they did last. */
        get: operations["lifecycle"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/lifecycle/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What runs of the jobs did to which memories, and why. */
        get: operations["lifecycle_runs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/lifecycle/runs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One run. */
        get: operations["lifecycle_show"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/lifecycle/{id}/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Run one of these jobs now, or say what it would do. */
        post: operations["lifecycle_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/kg/assert": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** State something; what held until then ends. */
        post: operations["kg_assert"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/kg": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What is stated about a subject, now or at an instant. */
        get: operations["kg_query"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/kg/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Everything ever stated about a subject, oldest first. */
        get: operations["kg_history"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/kg/path": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The fewest statements that lead from one thing to another. */
        get: operations["kg_path"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/kg/neighbors": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The memories tied to one, nearest first. */
        get: operations["kg_neighbors"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/kg/retract": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** End what holds of a subject and predicate now. */
        post: operations["kg_retract"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/kg/erase": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Erase everything ever stated about a subject. */
        post: operations["kg_erase"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/preview/kg/erase": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** What an erasure would remove; nothing is changed. */
        post: operations["preview_kg_erase"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/rpc": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** The same operations as JSON-RPC 2.0, singly or in a batch. */
        post: operations["rpc"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the caller can read, as one file. */
        get: operations["export"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/import": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Take in such a file. */
        post: operations["import"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/amp/store": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Create a record or replace it. */
        post: operations["amp_store"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/amp/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Find records by meaning. */
        post: operations["amp_search"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/amp/records": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List records by time. */
        get: operations["amp_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/amp/records/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read one record. */
        get: operations["amp_get"];
        put?: never;
        post?: never;
        /** Remove a record. */
        delete: operations["amp_delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/amp/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Health and statistics. */
        get: operations["amp_status"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/amp/agents/{agent}/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What an agent is doing. */
        get: operations["amp_agent_status"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/embeddings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Vectors for texts, by the store's embedder. */
        post: operations["embeddings"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openwop/refs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Get the memoryRef of an agent. */
        post: operations["openwop_ref"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openwop/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Start a run: it sees what is there now. */
        post: operations["openwop_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openwop/runs/{runId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** End a run and drop what it noted for itself. */
        delete: operations["openwop_end"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openwop/memory": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List entries. */
        get: operations["openwop_list"];
        put?: never;
        /** Write an entry. */
        post: operations["openwop_put"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openwop/memory/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read one entry. */
        get: operations["openwop_get"];
        put?: never;
        post?: never;
        /** Delete an entry. */
        delete: operations["openwop_delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/.well-known/openwop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What this host offers. */
        get: operations["openwop_discovery"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/mrp/request": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Ask for memories. */
        post: operations["mrp_request"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/mrp/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Check a memory that was answered. */
        post: operations["mrp_verify"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/mrp/vouches": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who vouches for whom. */
        get: operations["mrp_vouches"];
        put?: never;
        /** Vouch for an agent. */
        post: operations["mrp_vouch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * AMP agent_status response
         * @description What an agent is doing, by its newest checkpoint.
         */
        AmpAgentStatusResponse: {
            /**
             * @description Always true.
             * @constant
             */
            success: true;
            /** @description The agent. */
            agent: string;
            /**
             * @description What the newest checkpoint's flags and blockers say; idle without one.
             * @enum {unknown}
             */
            status: "idle" | "in_progress" | "blocked";
            /** @description How many checkpoints it has. */
            checkpoint_count: number;
            /** @description The newest checkpoint's working_on, or null. */
            current_task: string | null;
            /** @description When that checkpoint was last written, or null. Milliseconds since the Unix epoch. */
            last_updated: number | null;
        };
        /**
         * AMP delete response
         * @description Whether there was one.
         */
        AmpDeleteResponse: {
            /**
             * @description Always true.
             * @constant
             */
            success: true;
            /** @description False when no such record existed. */
            deleted: boolean;
            /**
             * @description True while it waits for approval; absent otherwise.
             * @constant
             */
            pending_approval?: true;
            /** @description The review that it waits for; absent when nothing waits for approval. */
            review_id?: string;
            /** @description Where a person decides about it; absent when nothing waits, or no server shows it. */
            approval_url?: string;
        };
        /**
         * AMP error
         * @description What a caller is told when a request fails.
         */
        AmpErrorResponse: {
            /**
             * @description Always false.
             * @constant
             */
            success: false;
            /** @description The fault. */
            error: {
                /**
                 * @description What kind of fault it is.
                 * @enum {unknown}
                 */
                code: "validation_error" | "unauthenticated" | "forbidden" | "not_found" | "conflict" | "payload_too_large" | "secret_leakage" | "rate_limited" | "not_implemented" | "unavailable";
                /** @description One sentence for a person. */
                message: string;
            };
        };
        /**
         * AMP get response
         * @description The record.
         */
        AmpGetResponse: {
            /**
             * @description Always true.
             * @constant
             */
            success: true;
            /** @description The record. */
            record: components["schemas"]["AmpRecord"];
        };
        /**
         * AMP list response
         * @description A page of records.
         */
        AmpListResponse: {
            /**
             * @description Always true.
             * @constant
             */
            success: true;
            /** @description The records. */
            records: components["schemas"]["AmpRecord"][];
            /** @description How many there are in all. */
            total: number;
            /** @description Whether more follow. */
            has_more: boolean;
        };
        /**
         * AMP memory record
         * @description A record as it is read. Fields of its type, and every other field it was stored with, stand beside these.
         */
        AmpRecord: {
            /** @description The record's id, opaque to clients. */
            id: string;
            /** @description lesson, checkpoint, snippet, or another type. */
            type: string;
            /** @description What search looks at. */
            content: string;
            /** @description When it was stored. Milliseconds since the Unix epoch. */
            created_at: number;
            /** @description When it was last replaced or changed. Milliseconds since the Unix epoch. */
            updated_at?: number;
            /** @description The agent it belongs to; without one it lies in the shared space. */
            agent?: string;
            /** @description The project or repository it concerns. */
            project?: string;
            /** @description A short descriptive title. */
            title?: string;
            /** @description User-defined tags. */
            tags?: string[];
            /** @description When it ends. Milliseconds since the Unix epoch. */
            expires_at?: number;
        } & {
            [key: string]: unknown;
        };
        /**
         * AMP search request
         * @description Find records by meaning. An optional field is left out, never null.
         */
        AmpSearchRequest: {
            /**
             * @description The operation's name; may be left out.
             * @constant
             */
            operation?: "search";
            /** @description What to look for, in plain words. */
            query: string;
            /** @description Only records of this type. */
            type?: string;
            /** @description Only records that carry all of these. */
            tags?: string[];
            /** @description Only records of this project. */
            project?: string;
            /** @description That agent's records and the shared ones; without it, those of every agent you may read. */
            agent?: string;
            /**
             * @description How many results at most.
             * @default 10
             */
            limit?: number;
            /** @description Only results that score at least this. */
            min_score?: number;
        };
        /**
         * AMP search response
         * @description What was found, best first.
         */
        AmpSearchResponse: {
            /**
             * @description Always true.
             * @constant
             */
            success: true;
            /** @description The results. */
            results: {
                /** @description The record's id. */
                id: string;
                /** @description How relevant it is, from 0 to 1. */
                score: number;
                /** @description The record. */
                record: components["schemas"]["AmpRecord"];
            }[];
            /** @description How many there are at or above the cut-off, before limit; counted up to 1,000. */
            total: number;
            /** @description Something worth knowing, such as that there is no embedding model. */
            note?: string;
        };
        /**
         * AMP status response
         * @description Health and statistics.
         */
        AmpStatusResponse: {
            /**
             * @description Always true.
             * @constant
             */
            success: true;
            /** @description Whether the store answers. */
            healthy: boolean;
            /** @description The server's version. */
            version: string;
            /**
             * @description The protocol served.
             * @constant
             */
            protocol: "AMP/0.1";
            /** @description Counts of the records you may read. */
            stats: {
                /** @description How many lessons. */
                lessons: number;
                /** @description How many checkpoints. */
                checkpoints: number;
                /** @description How many snippets. */
                snippets: number;
                /** @description How many records of any type. */
                total_records: number;
                /** @description The embedding model, or null when there is none and search goes by keywords. */
                embedding_model: string | null;
            };
            /** @description What the server can do. */
            capabilities: {
                /** @description The embedding model, or null when there is none and search goes by keywords. */
                embedding_model: string | null;
                /** @description The most characters content may have. */
                max_content_length: number;
                /** @description Types with rules of their own; any other is kept as well. */
                supported_types: string[];
            };
        };
        /**
         * AMP store request
         * @description Create a record, or replace the one its id names. An optional field is left out, never null.
         */
        AmpStoreRequest: {
            /**
             * @description The operation's name; may be left out.
             * @constant
             */
            operation?: "store";
            /** @description The record. A lesson needs title and content, a checkpoint agent and working_on, every other type content; fields that are not named here are kept and come back. */
            record: ({
                /** @description An id of your choice or one you were given: an unknown one creates under it, a known one replaces the whole record. */
                id?: string;
                /** @description lesson, checkpoint, snippet, or any other word. */
                type: string;
                /** @description What search looks at; a checkpoint's is made of working_on and state when absent. */
                content?: string;
                /** @description The agent it belongs to; without one it lies in the shared space. */
                agent?: string;
                /** @description The project or repository it concerns. */
                project?: string;
                /** @description A short descriptive title. */
                title?: string;
                /** @description User-defined tags. */
                tags?: string[];
                /** @description When it ends. Milliseconds since the Unix epoch. */
                expires_at?: number;
                /** @description Of a lesson: info, warning or critical. */
                severity?: unknown;
                /** @description Of a checkpoint, required: the current task. */
                working_on?: unknown;
                /** @description Of a checkpoint: {decisions, blockers, artifacts, flags}, each a list of strings. */
                state?: unknown;
                /** @description Of a checkpoint: the session it belongs to. */
                session_id?: unknown;
                /** @description Of a snippet: the source file. */
                file_path?: unknown;
                /** @description Of a snippet: the programming language. */
                language?: unknown;
                /** @description Of a snippet: the first line in the source. */
                start_line?: unknown;
                /** @description Of a snippet: the last line in the source. */
                end_line?: unknown;
                /** @description Of a snippet: the repository. */
                repo?: unknown;
                /** @description The server's: accepted so that a record can be stored as it was read, and ignored. */
                created_at?: unknown;
                /** @description The server's, like created_at. */
                updated_at?: unknown;
            } & {
                [key: string]: unknown;
            }) & (unknown & unknown & unknown);
            /**
             * @description Hold the new record back until someone approves it.
             * @default false
             */
            approval_required?: boolean;
        };
        /**
         * AMP store response
         * @description What became of it.
         */
        AmpStoreResponse: {
            /**
             * @description Always true.
             * @constant
             */
            success: true;
            /** @description The record's id. */
            id: string;
            /** @description False when it replaced a record. */
            created: boolean;
            /**
             * @description True while it waits for approval; absent otherwise.
             * @constant
             */
            pending_approval?: true;
            /** @description The review that it waits for; absent when nothing waits for approval. */
            review_id?: string;
            /** @description Where a person decides about it; absent when nothing waits, or no server shows it. */
            approval_url?: string;
        };
        /**
         * memorywire consistency proof
         * @description The proof that one tree is the beginning of another (RFC 6962, 2.1.2).
         */
        AuditConsistencyResponse: {
            /** @description The size of the earlier. */
            from: number;
            /** @description The size of the later. */
            to: number;
            /** @description The root of the earlier tree, hex. */
            from_root: string;
            /** @description The root of the later tree, hex. */
            to_root: string;
            /** @description The hashes of the proof in the order of RFC 6962, hex. */
            path: string[];
        };
        /**
         * memorywire signed tree head
         * @description What the audit trail is at this moment, signed. The signature is Ed25519 over the RFC 8785 bytes of the other fields.
         */
        AuditHeadResponse: {
            /** @description Whose audit trail. */
            tenant: string;
            /** @description How many entries it has. */
            size: number;
            /** @description The root of the Merkle tree over them (RFC 6962), hex. */
            root: string;
            /** @description When it was signed, ms since 1970. */
            at: number;
            /** @description The fingerprint of the key that signed it. */
            key_id: string;
            /** @description Base64. */
            signature: string;
        };
        /**
         * memorywire audit key
         * @description The public key that tree heads are signed with.
         */
        AuditKeyResponse: {
            /** @description Its fingerprint. */
            key_id: string;
            /** @description Base64 of its 32 bytes. */
            public_key: string;
            /**
             * @description Always ed25519.
             * @constant
             */
            algorithm: "ed25519";
            /** @description Those that signed earlier heads. */
            retired: {
                /** @description Its fingerprint. */
                key_id: string;
                /** @description Base64 of its 32 bytes. */
                public_key: string;
            }[];
        };
        /**
         * memorywire inclusion proof
         * @description The path from an entry to the root (RFC 6962, 2.1.1). A leaf is the hash of an entry, as `hash` says it, in 32 bytes.
         */
        AuditProofResponse: {
            /** @description The number of the entry. */
            entry: number;
            /** @description Of how many entries the tree is. */
            size: number;
            /** @description SHA-256 of a zero byte and the 32 bytes of the entry's hash, hex. */
            leaf_hash: string;
            /** @description The hashes of the proof in the order of RFC 6962, hex. */
            path: string[];
            /** @description The root of the tree, hex. */
            root: string;
        };
        /**
         * memorywire audit response
         * @description A page of the audit trail, oldest first.
         */
        AuditResponse: {
            /** @description The entries. */
            entries: {
                /** @description Its number. */
                n: number;
                /** @description When it happened. Milliseconds since the Unix epoch. */
                at: number;
                /** @description The tenant's sequence then. */
                seq: number;
                /** @description What was done. */
                operation: string;
                /** @description Whose memory; * when several. */
                agent_id: string;
                /** @description Who did it. */
                principal: string;
                /** @description What the payloads are bound by; with the fields before it and `previous` it makes `hash` (RFC 8785, SHA-256). */
                payload_hash: string;
                /** @description The hash of this entry. */
                hash: string;
                /** @description The hash of the one before; empty for the first. */
                previous: string;
                /** @description What was done to each memory; what was erased says so. */
                payload: {
                    [key: string]: unknown;
                }[];
            }[];
            /** @description Give it back as cursor for the next page; null at the end. */
            next_cursor?: string | null;
        };
        /**
         * memorywire audit verification
         * @description Whether the audit chain is whole and every row as it says. An optional field is left out, never null.
         */
        AuditVerifyResponse: {
            /** @description Whether every entry follows from the one before, and every row is as its entry says. */
            ok: boolean;
            /** @description How many were found good. */
            entries: number;
            /** @description The hash of the last good one; empty when there is none. */
            head: string;
            /** @description The first entry that is wrong, or that says otherwise than a row; left out for a row that no entry is about. */
            first_bad?: number;
            /** @description What is wrong. */
            problem?: string;
        };
        /**
         * memorywire review decisions request
         * @description Decide the same about many requests that wait. An optional field is left out, never null.
         */
        DecideManyRequest: {
            /** @description The reviews, at most 1,000. */
            ids: string[];
            /** @description Whether it goes through. */
            approved: boolean;
            /** @description Who decides; taken from the token when there is one. */
            reviewer?: string;
            /** @description Why. */
            reason?: string;
        };
        /**
         * memorywire review decisions response
         * @description Each review's own outcome, in the order asked.
         */
        DecideManyResponse: {
            /** @description One for each id. */
            results: {
                /** @description The review's id. */
                id: string;
                /**
                 * @description How it was decided.
                 * @enum {unknown}
                 */
                status?: "approved" | "rejected";
                /** @description Why it was not decided so. */
                error?: {
                    /** @description What kind of fault. */
                    code: string;
                    /** @description What to do about it. */
                    message: string;
                    /** @description More about it. */
                    details?: {
                        [key: string]: unknown;
                    };
                };
                /** @description The stores beside the primary that have not done it yet, with the reason; absent when all have. */
                errors?: {
                    /** @description The store's name. */
                    store: string;
                    /** @description What went wrong. */
                    error: string;
                }[];
            }[];
        };
        /**
         * memorywire review decision request
         * @description Decide about a request that waits. An edited request is approved as edited. An optional field is left out, never null.
         */
        DecideRequest: {
            /** @description Whether it goes through. */
            approved: boolean;
            /** @description Who decides; taken from the token when there is one. */
            reviewer?: string;
            /** @description Why. */
            reason?: string;
            /** @description The request as it should have been, following the schema of its operation. At most 100 levels deep. */
            request?: {
                [key: string]: unknown;
            };
            /** @description What else to do in the same transaction when a new memory is approved. */
            apply?: {
                /** @description The existing memory that the new one joins. */
                merge_into?: string;
                /** @description Existing memories that the new one takes the place of. */
                forget?: string[];
            };
            /** @description The revision of the review that was looked at; another one is a conflict that carries the fresh review. */
            revision?: number;
        };
        /**
         * memorywire review decision response
         * @description The decision, with the review it settled and what came of it. An optional field is left out, never null.
         */
        DecideResponse: {
            /** @description Whether it went through. */
            approved: boolean;
            /** @description Who decided. */
            reviewer: string;
            /** @description When they decided. Milliseconds since the Unix epoch. */
            reviewed_at: number;
            /** @description Why they decided so. */
            reason?: string;
            /** @description The review's id. */
            id: string;
            /**
             * @description The operation that waits.
             * @enum {unknown}
             */
            operation: "remember" | "update" | "forget" | "merge" | "statement" | "attestation";
            /** @description The agent whose memory this is; nothing is read or written across agents. */
            agent_id: string;
            /** @description When it was asked for. Milliseconds since the Unix epoch. */
            created_at: number;
            /**
             * @description Whether it waits or how it was decided.
             * @enum {unknown}
             */
            status: "pending" | "approved" | "rejected" | "expired";
            /** @description Who asked. */
            requested_by: string;
            /** @description The request as it was made, or as the reviewer changed it. At most 100 levels deep. */
            request?: {
                [key: string]: unknown;
            };
            /** @description What the memory would gain, lose and change if it went through. */
            diff?: components["schemas"]["GovernanceReviewRequestDiff"];
            /** @description Why the caller wants it. */
            reasoning?: string;
            /** @description The memories nearest to what is proposed, the most similar first, beside those of the diff. */
            nearest?: {
                /** @description The memory's id. */
                id: string;
                /** @description How alike they are, from 0 to 1. */
                similarity: number;
                /**
                 * @description How the proposal stands to it: it names it as superseded, says the same, says most of the same but for a negation or a number, or is merely similar.
                 * @enum {unknown}
                 */
                relation: "supersedes" | "duplicate" | "contradicts" | "similar";
                /**
                 * @description Its type; where one review is asked for.
                 * @enum {unknown}
                 */
                type?: "semantic" | "episodic" | "procedural" | "emotional";
                /** @description What it says now; where one review is asked for. */
                content?: string;
            }[];
            /** @description The version of each memory, by its id, that the diff was made from, and for a new memory of each that is nearest to it; approving means these. */
            versions?: {
                [key: string]: unknown;
            };
            /** @description Grows with every edit and every fresh diff; give it with a decision to be told when you looked at an older one. */
            revision?: number;
            /** @description Who changed the request while it waited. */
            edited_by?: string[];
            /** @description The id a new memory will have. */
            memory_id?: string;
            /** @description What was decided. */
            decision?: components["schemas"]["GovernanceDecisionRequest"];
            /** @description Whether what it quoted has been erased. */
            erased?: boolean;
            /** @description What came of an approval. */
            outcome?: {
                /** @description The memory or statement that was written. */
                id?: string;
                /** @description The stores that keep it. */
                stores?: string[];
                /** @description The memories that are gone. */
                forgotten_ids?: string[];
                /** @description What an erasure touched or could not reach beyond the ids asked for. */
                erased?: {
                    /**
                     * @description What the erased memories were merged into and still holds their content; with cascade it is erased too.
                     * @default []
                     */
                    descendants?: string[];
                    /** @description What was merged into the erased memories and is still there, readable at an earlier instant; with cascade it is erased too. */
                    sources?: string[];
                    /**
                     * @description Backups made by the user that still hold the content. Only the operator (an admin of the tenant local who may use every agent) is told where they lie.
                     * @default []
                     */
                    backups?: string[];
                    /** @description How many backups still hold the content. */
                    backup_count?: number;
                };
                /** @description What went wrong after it was done, such as a copy that could not be removed. */
                error?: string;
                /** @description The memory that others were merged into. */
                canonical?: string;
                /** @description How many were merged into it. */
                merged_count?: number;
            };
            /** @description The policy rule that asks for the review. */
            rule?: string;
            /** @description The protocol it came by. */
            dialect?: string;
            /** @description Who that is elsewhere, as OpenID Connect tells people apart. */
            identity?: {
                /** @description Who says so. */
                iss: string;
                /** @description The person, to whoever says so. */
                sub: string;
                /** @description An address. */
                email?: string;
                /** @description A name. */
                name?: string;
            };
            /** @description The stores beside the primary that have not done it yet, with the reason; absent when all have. */
            errors?: {
                /** @description The store's name. */
                store: string;
                /** @description What went wrong. */
                error: string;
            }[];
        };
        /**
         * memorywire error
         * @description What a caller is told when a request fails, on every transport. An optional field is left out, never null.
         */
        ErrorResponse: {
            /** @description The fault. */
            error: {
                /**
                 * @description What kind of fault it is.
                 * @enum {unknown}
                 */
                code: "validation_error" | "unauthenticated" | "forbidden" | "not_found" | "conflict" | "payload_too_large" | "secret_leakage" | "rate_limited" | "unavailable";
                /** @description One sentence for a person. */
                message: string;
                /** @description Facts a program can use, such as the field at fault. */
                details?: {
                    [key: string]: unknown;
                };
            };
        };
        /**
         * memorywire expire request
         * @description Apply a retention policy to the agent's memories. An optional field is left out, never null.
         */
        ExpireRequest: {
            /** @description The agent whose memory this is; nothing is read or written across agents. */
            agent_id: string;
            /** @description The conditions, all of which must hold; at least one is given. */
            policy: {
                /** @description Created more than this many days ago. */
                older_than_days?: number;
                /**
                 * @description Of this type.
                 * @enum {unknown}
                 */
                type?: "semantic" | "episodic" | "procedural" | "emotional";
                /** @description With a confidence below this. */
                confidence_below?: number;
                /** @description Not recalled within this many days. */
                no_recall_in_days?: number;
            };
            /**
             * @description What happens to them: deleted, put out of recall's reach, or ranked lower.
             * @default forget
             * @enum {unknown}
             */
            action?: "forget" | "archive" | "demote";
        };
        /**
         * memorywire expire response
         * @description What the policy reached. An optional field is left out, never null.
         */
        ExpireResponse: {
            /** @description How many memories met the policy. */
            matched_count: number;
            /**
             * @description What was done to them.
             * @enum {unknown}
             */
            action_taken: "forget" | "archive" | "demote";
            /** @description The stores that did it, by name; empty while nothing was changed. */
            stores: string[];
            /** @description How many of them nothing was done to, because of what errors says; absent when it was done to all. */
            remaining_count?: number;
            /** @description The stores that did not do it, or not all of it, with the reason; absent when all did. */
            errors?: {
                /** @description The store's name. */
                store: string;
                /** @description What went wrong. */
                error: string;
            }[];
        };
        /**
         * memorywire forget request
         * @description Delete memories, named by ids, by a filter, or by both. A request that names nothing is refused. An optional field is left out, never null.
         */
        ForgetRequest: {
            /** @description The agent whose memory this is; nothing is read or written across agents. */
            agent_id: string;
            /** @description Only memories of this person. */
            user_id?: string;
            /** @description The memories to forget. This or filter must be non-empty. */
            ids?: string[];
            /** @description Which memories to forget. This or ids must be non-empty. Keys name a metadata field (dots reach inside) or a column of the record; a scalar means equality, a list any of them, and an object holds operators: $gt $gte $lt $lte $ne $in $nin $exists $contains. All keys must hold. */
            filter?: {
                [key: string]: unknown;
            };
            /**
             * @description Erase the content everywhere instead of hiding it.
             * @default false
             */
            hard_delete?: boolean;
            /** @description Why they are forgotten; kept in the audit trail. Of what is hidden it goes when that is erased; of an erasure it is kept for good, so it should not quote what is erased. */
            reason?: string;
            /**
             * @description Do nothing until a person approves it.
             * @default false
             */
            approval_required?: boolean;
            /**
             * @description With hard_delete, erase too what these were merged into and what was merged into them, all the way.
             * @default false
             */
            cascade?: boolean;
            /** @description Why the caller wants this; shown to the reviewer when the request waits for approval. */
            reasoning?: string;
            /**
             * @description Look among the memories of every agent that the caller may write to, and not only of agent_id; cannot wait for approval.
             * @default false
             */
            all_agents?: boolean;
        } | {
            ids: unknown;
        } | {
            filter: unknown;
        };
        /**
         * memorywire forget response
         * @description What was forgotten, and where. An optional field is left out, never null; only approval_url may be null.
         */
        ForgetResponse: {
            /** @description The memories that are gone; empty while the request waits for approval. */
            forgotten_ids: string[];
            /** @description What each store did: how many memories it forgot, or why it failed. */
            stores: {
                /** @description The store's name. */
                store: string;
                /** @description How many memories it forgot. */
                count: number;
                /** @description Why the store failed; absent when it did not. */
                error?: string;
            }[];
            /** @description Whether the content was erased (true) or only hidden (false). */
            hard_delete: boolean;
            /** @description Whether the request waits for approval. */
            pending_approval?: boolean;
            /** @description Where a person can review it; null or absent when nothing waits for approval. */
            approval_url?: string | null;
            /** @description The review that it waits for; absent when nothing waits for approval. */
            review_id?: string;
            /** @description What an erasure touched or could not reach beyond the ids asked for. */
            erased?: {
                /**
                 * @description What the erased memories were merged into and still holds their content; with cascade it is erased too.
                 * @default []
                 */
                descendants?: string[];
                /** @description What was merged into the erased memories and is still there, readable at an earlier instant; with cascade it is erased too. */
                sources?: string[];
                /**
                 * @description Backups made by the user that still hold the content. Only the operator (an admin of the tenant local who may use every agent) is told where they lie.
                 * @default []
                 */
                backups?: string[];
                /** @description How many backups still hold the content. */
                backup_count?: number;
            };
            /** @description What was meant and is still there, because a store failed on the way: its error says why. Absent when all of it is gone. */
            remaining_ids?: string[];
            /** @description With all_agents: every agent that was looked at, and how many of its memories are gone. */
            agents?: {
                /** @description The agent. */
                agent_id: string;
                /** @description How many of its memories are gone. */
                count: number;
            }[];
        };
        /**
         * memorywire governance decision
         * @description What a person decided about a request. An optional field is left out, never null.
         */
        GovernanceDecisionRequest: {
            /** @description Whether it goes through. */
            approved: boolean;
            /** @description Who decided. */
            reviewer: string;
            /** @description When they decided. Milliseconds since the Unix epoch. */
            reviewed_at: number;
            /** @description Why they decided so. */
            reason?: string;
            /** @description Who that is elsewhere, as OpenID Connect tells people apart. */
            identity?: {
                /** @description Who says so. */
                iss: string;
                /** @description The person, to whoever says so. */
                sub: string;
                /** @description An address. */
                email?: string;
                /** @description A name. */
                name?: string;
            };
        };
        /** @description What the memory would gain, lose and change if it went through. */
        GovernanceReviewRequestDiff: {
            /**
             * @description Memories or statements that would appear.
             * @default []
             */
            added?: {
                [key: string]: unknown;
            }[];
            /**
             * @description Memories that would disappear.
             * @default []
             */
            removed?: {
                [key: string]: unknown;
            }[];
            /**
             * @description Memories or statements that would change.
             * @default []
             */
            modified?: {
                /** @description The memory now. At most 100 levels deep. */
                before: {
                    [key: string]: unknown;
                };
                /** @description The memory then. At most 100 levels deep. */
                after: {
                    [key: string]: unknown;
                };
            }[];
        };
        /**
         * memorywire health response
         * @description Whether the server can work. An optional field is left out, never null.
         */
        HealthResponse: {
            /**
             * @description ok, or how bad it is.
             * @enum {unknown}
             */
            status: "ok" | "degraded" | "down";
            /** @description The server's version. */
            version: string;
            /** @description The store's name. */
            store: string;
            /** @description What the store can do. */
            capabilities: string[];
            /** @description The embedder; null when recall is by keywords only. */
            embedder?: string | null;
            /** @description What to know about it. */
            note?: string;
        };
        /**
         * memorywire history response
         * @description Every version of one memory, oldest first.
         */
        HistoryResponse: {
            /** @description The versions. */
            versions: components["schemas"]["Memory"][];
        };
        /**
         * memorywire import
         * @description What an import did and did not do.
         */
        ImportResponse: {
            /** @description What kind of file it was. */
            format: string;
            /** @description Whether nothing was changed. */
            dry_run: boolean;
            /** @description What was written, or would be, by kind of record. */
            written: {
                [key: string]: number;
            };
            /** @description What is here already and was left alone, by kind of record. */
            known: {
                [key: string]: number;
            };
            /** @description What is here already and was brought up to date, by kind of record. */
            updated: {
                [key: string]: number;
            };
            /** @description How many memories wait for a reviewer. */
            staged: number;
            /** @description Secrets that were replaced, by label. */
            redacted: {
                [key: string]: number;
            };
            /** @description What was not taken in, by reason, the most frequent first. */
            left_out: {
                /** @description Why. */
                reason: string;
                /** @description How many for this reason. */
                count: number;
                /** @description The first of them. */
                examples: string[];
            }[];
            /** @description What could not be read; of very many, the first. */
            broken: {
                /** @description The line. */
                where: string;
                /** @description What is wrong with it. */
                reason: string;
            }[];
            /** @description How many places could not be read. */
            broken_count: number;
            /** @description Memories written, by agent. */
            agents: {
                [key: string]: number;
            };
            /** @description The stores beside the primary that have not done it yet, with the reason; absent when all have. */
            errors?: {
                /** @description The store's name. */
                store: string;
                /** @description What went wrong. */
                error: string;
            }[];
        };
        /**
         * memorywire kg assert request
         * @description State something. What held of this subject and predicate at that instant ends there, in the same transaction; the new statement holds until the next one of them begins. An optional field is left out, never null.
         */
        KgAssertRequest: {
            /** @description The agent whose knowledge this is; nothing is read or written across agents. */
            agent_id: string;
            /** @description What it is about. */
            subject: string;
            /** @description What is said of it. */
            predicate: string;
            /** @description The value, or the other thing. */
            object: string;
            /**
             * @description How sure it is, from 0 to 1.
             * @default 1
             */
            confidence?: number;
            /** @description Where it comes from. A memory's id or alias binds it to that memory: when the memory is erased, so is this. */
            provenance?: string;
            /** @description Since when it holds; now when absent. Milliseconds since the Unix epoch. */
            valid_from?: number;
            /**
             * @description Do nothing until a person approves it.
             * @default false
             */
            approval_required?: boolean;
            /** @description Why the caller wants this; shown to the reviewer when the request waits for approval. */
            reasoning?: string;
        };
        /**
         * memorywire kg assert response
         * @description The statement that was made, and the one it ended; while it waits for approval, what it would make and end if it went through now.
         */
        KgAssertResponse: {
            /** @description Of this statement; each version has its own. */
            id: string;
            /** @description The agent whose knowledge this is; nothing is read or written across agents. */
            agent_id: string;
            /** @description What it is about. */
            subject: string;
            /** @description What is said of it. */
            predicate: string;
            /** @description The value, or the other thing. */
            object: string;
            /** @description When it began to hold. Milliseconds since the Unix epoch. */
            valid_from: number;
            /** @description When it ceased to hold, or will: the first instant at which it does not; null when no end is known. Milliseconds since the Unix epoch. */
            valid_to?: number | null;
            /** @description How sure it is, from 0 to 1. */
            confidence: number;
            /** @description Where it comes from, as its author put it. */
            provenance?: string;
            /** @description Who stated it. */
            asserted_by: string;
            /** @description What held of this subject and predicate until then, as it is now: it ends where the new one begins. Left out when nothing did. */
            replaced?: components["schemas"]["Triple"];
            /** @description Whether the request waits for approval. */
            pending_approval?: boolean;
            /** @description Where a person can review it; null or absent when nothing waits for approval. */
            approval_url?: string | null;
            /** @description The review that it waits for; absent when nothing waits for approval. */
            review_id?: string;
        };
        /**
         * memorywire kg erase request
         * @description Erase everything ever stated about a subject, of all times, and what the audit trail says of it.
         */
        KgEraseRequest: {
            /** @description The agent whose knowledge this is; nothing is read or written across agents. */
            agent_id: string;
            /** @description What it is about. */
            subject: string;
            /**
             * @description Also what names it as the object.
             * @default false
             */
            mentions?: boolean;
        };
        /**
         * memorywire kg erase response
         * @description What was erased.
         */
        KgEraseResponse: {
            /** @description As it was asked for. */
            subject: string;
            /** @description The ids of the statements that are gone. */
            erased: string[];
            /** @description Backups made by the user that may still hold it. Only the operator (an admin of the tenant local who may use every agent) is told where they lie. */
            backups?: string[];
            /** @description How many such backups there are. */
            backup_count?: number;
            /** @description The ids of statements that are still there, because the store failed on the way. Absent when all are gone. */
            remaining?: string[];
            /** @description What failed after something was erased; absent when nothing did. */
            error?: string;
        };
        /**
         * memorywire kg neighbors response
         * @description The memories tied to one, nearest first.
         */
        KgNeighborsResponse: {
            /** @description As it was asked for. */
            id: string;
            /** @description The memories within reach. */
            neighbors: {
                /** @description Of the memory. */
                id: string;
                /** @description In hops. */
                distance: number;
            }[];
        };
        /**
         * memorywire kg path response
         * @description The fewest statements that lead from one thing to another, each in either direction; empty when none do.
         */
        KgPathResponse: {
            /** @description As it was asked for. */
            start: string;
            /** @description As it was asked for. */
            end: string;
            /** @description The statements, in the order of the way. */
            triples: components["schemas"]["Triple"][];
        };
        /**
         * memorywire kg response
         * @description What is stated about a subject.
         */
        KgResponse: {
            /** @description As it was asked for. */
            subject: string;
            /** @description The statements. */
            triples: components["schemas"]["Triple"][];
        };
        /**
         * memorywire kg retract request
         * @description End what holds of a subject and predicate now, with nothing in its place.
         */
        KgRetractRequest: {
            /** @description The agent whose knowledge this is; nothing is read or written across agents. */
            agent_id: string;
            /** @description What it is about. */
            subject: string;
            /** @description What is said of it. */
            predicate: string;
        };
        /**
         * memorywire lifecycle status
         * @description What happens to memories without anyone's asking.
         */
        LifecycleResponse: {
            /** @description Every job. */
            jobs: {
                /** @description Its name. */
                job: string;
                /** @description How often it is due. */
                every_seconds: number;
                /** @description Whether it only runs when someone says so. */
                paused: boolean;
                /** @description Whether this process is at it now. */
                running: boolean;
                /** @description Its last run for this tenant, or null. */
                last_run: {
                    /** @description When it began. Milliseconds since the Unix epoch. */
                    at: number;
                    /** @description How long it took. */
                    duration_ms: number;
                    /** @description How many of what were done, or would be. */
                    counts: {
                        [key: string]: number;
                    };
                    /** @description Why it was not done, or null. */
                    error: string | null;
                } | null;
            }[];
        };
        /**
         * memorywire lifecycle run request
         * @description Run a job now. An optional field is left out, never null.
         */
        LifecycleRunRequest: {
            /**
             * @description Only say what would be done.
             * @default false
             */
            dry_run?: boolean;
        };
        /**
         * memorywire lifecycle run
         * @description What a run of a job did.
         */
        LifecycleRunResponse: {
            /** @description The job. */
            job: string;
            /** @description Whether nothing was changed. */
            dry_run: boolean;
            /** @description When it began. Milliseconds since the Unix epoch. */
            at: number;
            /** @description How long it took. */
            duration_ms: number;
            /** @description How many of what were done, or would be. */
            counts: {
                [key: string]: number;
            };
            /** @description Why it was not done, or null. */
            error: string | null;
            /** @description The run, where it did something that can be undone, else null. */
            run_id: string | null;
            /** @description What a dry run would do, and why; of very many, the first. */
            actions: {
                /**
                 * @description What was done.
                 * @enum {string}
                 */
                action: "merged" | "promoted" | "archived" | "forgotten" | "demoted";
                /** @description Whose memory. */
                agent_id: string;
                /** @description The memory; undoing it takes the whole action back. */
                id: string;
                /** @description Its version afterwards; in a dry run, the one it has. */
                version: number;
                /** @description The parts of a score, a similarity, or the policy. */
                why: {
                    [key: string]: unknown;
                };
                /** @description What it was merged into or promoted to. */
                into?: string;
                /** @description All that were promoted together, where there are several. */
                sources?: string[];
                /** @description The beginning of what it says, or of what it became part of, where the caller may read it. */
                content?: string;
            }[];
            /** @description The stores beside the primary that have not done it yet, with the reason; absent when all have. */
            errors?: {
                /** @description The store's name. */
                store: string;
                /** @description What went wrong. */
                error: string;
            }[];
        };
        /**
         * memorywire lifecycle runs
         * @description Runs that did something to memories, the newest first.
         */
        LifecycleRunsResponse: {
            /** @description The runs. */
            runs: {
                /** @description What `undo` takes as run_id. */
                id: string;
                /** @description The job. */
                job: string;
                /** @description Who ran it. */
                by: string;
                /** @description When it began. Milliseconds since the Unix epoch. */
                at: number;
                /** @description How long it took; null of one that was interrupted. */
                duration_ms: number | null;
                /** @description How many of what were done; empty for those who may not use every agent. */
                counts: {
                    [key: string]: number;
                };
                /** @description Why it ended early, or null. */
                error: string | null;
                /** @description When it was last undone, or null. */
                undone_at: number | null;
                /** @description By whom, or null. */
                undone_by: string | null;
                /** @description What it did, in order; of very many, the first. */
                actions: {
                    /**
                     * @description What was done.
                     * @enum {string}
                     */
                    action: "merged" | "promoted" | "archived" | "forgotten" | "demoted";
                    /** @description Whose memory. */
                    agent_id: string;
                    /** @description The memory; undoing it takes the whole action back. */
                    id: string;
                    /** @description Its version afterwards; in a dry run, the one it has. */
                    version: number;
                    /** @description The parts of a score, a similarity, or the policy. */
                    why: {
                        [key: string]: unknown;
                    };
                    /** @description What it was merged into or promoted to. */
                    into?: string;
                    /** @description All that were promoted together, where there are several. */
                    sources?: string[];
                    /** @description The beginning of what it says, or of what it became part of, where the caller may read it. */
                    content?: string;
                }[];
                /** @description How many there are. */
                action_count: number;
            }[];
        };
        /**
         * memorywire lifecycle run shown
         * @description A run.
         */
        LifecycleShowResponse: {
            /** @description What `undo` takes as run_id. */
            id: string;
            /** @description The job. */
            job: string;
            /** @description Who ran it. */
            by: string;
            /** @description When it began. Milliseconds since the Unix epoch. */
            at: number;
            /** @description How long it took; null of one that was interrupted. */
            duration_ms: number | null;
            /** @description How many of what were done; empty for those who may not use every agent. */
            counts: {
                [key: string]: number;
            };
            /** @description Why it ended early, or null. */
            error: string | null;
            /** @description When it was last undone, or null. */
            undone_at: number | null;
            /** @description By whom, or null. */
            undone_by: string | null;
            /** @description What it did, in order; of very many, the first. */
            actions: {
                /**
                 * @description What was done.
                 * @enum {string}
                 */
                action: "merged" | "promoted" | "archived" | "forgotten" | "demoted";
                /** @description Whose memory. */
                agent_id: string;
                /** @description The memory; undoing it takes the whole action back. */
                id: string;
                /** @description Its version afterwards; in a dry run, the one it has. */
                version: number;
                /** @description The parts of a score, a similarity, or the policy. */
                why: {
                    [key: string]: unknown;
                };
                /** @description What it was merged into or promoted to. */
                into?: string;
                /** @description All that were promoted together, where there are several. */
                sources?: string[];
                /** @description The beginning of what it says, or of what it became part of, where the caller may read it. */
                content?: string;
            }[];
            /** @description How many there are. */
            action_count: number;
        };
        /**
         * memorywire list response
         * @description A page of memories, newest first.
         */
        ListResponse: {
            /** @description The memories. */
            memories: components["schemas"]["Memory"][];
            /** @description Give it back as cursor for the next page; null at the end. */
            next_cursor?: string | null;
        };
        /**
         * memorywire memory
         * @description A memory of any type as reading it shows it. An optional field is left out, never null.
         */
        Memory: {
            /** @description The memory's id, the same in every store. */
            id: string;
            /** @description The agent whose memory this is; nothing is read or written across agents. */
            agent_id: string;
            /**
             * @description Which of the four kinds of memory this is.
             * @enum {unknown}
             */
            type: "semantic" | "episodic" | "procedural" | "emotional";
            /** @description The content as it was written. */
            content: string;
            /** @description When it was written. Milliseconds since the Unix epoch. */
            created_at: number;
            /** @description When it last changed. Milliseconds since the Unix epoch. */
            updated_at: number;
            /** @description Counts the changes; expected_version of an update refers to it. */
            version: number;
            /**
             * @description Whether it can be recalled (live), waits for approval, was archived, or was deleted.
             * @enum {unknown}
             */
            status: "live" | "pending" | "archived" | "deleted";
            /** @description How sure the writer was, from 0 to 1. */
            confidence: number;
            /** @description Free-form JSON, as written. At most 100 levels deep. */
            metadata: {
                [key: string]: unknown;
            };
            /** @description A salted hash of the content. */
            content_hash?: string;
            /** @description The person it is about or came from. */
            user_id?: string;
            /** @description Where the content came from. */
            source?: string;
            /** @description When it stops being visible. Milliseconds since the Unix epoch. */
            expires_at?: number;
            /** @description The memory it was merged into. */
            merged_into?: string;
            /** @description When a recall last found it. Milliseconds since the Unix epoch. */
            last_recalled_at?: number;
            /** @description How often recalls found it. */
            recalls?: number;
            /** @description Ids that callers chose for it. */
            aliases?: string[];
            /** @description Memories it takes the place of. */
            supersedes?: string[];
            /** @description How long the memory may be kept, who may see it, and the consent it rests on; absent when nothing was said. */
            privacy_intent?: {
                /** @description Days after which the memory is erased. */
                retain?: number;
                /** @description Agents that may see it; "*" means any. */
                share_with?: string[];
                /** @description Reference to the consent under which it was recorded. */
                user_consent_id?: string;
            };
            /** @description Of a memory received from another agent: source, from, witnesses and chain. At most 100 levels deep. */
            provenance?: {
                [key: string]: unknown;
            };
            /** @description What its score is multiplied by. */
            demotion?: number;
        };
        /**
         * memorywire merge request
         * @description Collapse duplicates into one memory. An optional field is left out, never null.
         */
        MergeRequest: {
            /** @description The agent whose memory this is; nothing is read or written across agents. */
            agent_id: string;
            /** @description The memory that stays: its id, or the entity name it carries in metadata.entity_name. */
            canonical: string;
            /** @description The memories that are folded into it, by id or entity name. */
            duplicates: string[];
            /**
             * @description Whose content stays: the canonical one's, all of them joined, or the one the writers were surest of.
             * @default keep_canonical
             * @enum {unknown}
             */
            strategy?: "keep_canonical" | "merge_content" | "keep_highest_confidence";
            /**
             * @description Do nothing until a person approves it.
             * @default false
             */
            approval_required?: boolean;
            /** @description Why the caller wants this; shown to the reviewer when the request waits for approval. */
            reasoning?: string;
        };
        /**
         * memorywire merge response
         * @description What was merged, and where. An optional field is left out, never null; only approval_url may be null.
         */
        MergeResponse: {
            /** @description The id of the memory that stays. */
            canonical: string;
            /** @description How many duplicates were folded into it; 0 while the request waits for approval. */
            merged_count: number;
            /**
             * @description The strategy that was applied.
             * @enum {unknown}
             */
            strategy_used: "keep_canonical" | "merge_content" | "keep_highest_confidence";
            /** @description The stores that did it, by name; empty while nothing was merged. */
            stores: string[];
            /** @description The stores that did not do it, or not all of it, with the reason; absent when all did. */
            errors?: {
                /** @description The store's name. */
                store: string;
                /** @description What went wrong. */
                error: string;
            }[];
            /** @description Whether the request waits for approval. */
            pending_approval?: boolean;
            /** @description Where a person can review it; null or absent when nothing waits for approval. */
            approval_url?: string | null;
            /** @description The review that it waits for; absent when nothing waits for approval. */
            review_id?: string;
        };
        /**
         * Attestation v1
         * @description One memory as an agent vouches for it. Fields that are not listed are allowed and ignored. They are kept and sent on as they came.
         */
        MrpAttestationV1: {
            /** @description Where this schema is published. */
            $schema?: string;
            /** @description The attestation's id. */
            id: string;
            /** @description Whose memory it is. */
            agent: string;
            /**
             * Format: date-time
             * @description When it was made (ISO-8601).
             */
            created_at: string;
            /** @description What is remembered. */
            claim: {
                /**
                 * @description What kind of claim.
                 * @enum {unknown}
                 */
                type: "event" | "fact" | "observation" | "insight" | "relationship";
                /** @description The memory itself. */
                content: string;
                /** @description Where or when it came about. */
                context?: string | null;
                /** @description Ids or addresses of what it rests on. */
                references?: string[];
            };
            /** @description Why it was kept. */
            salience: {
                /** @description Why it was worth keeping. */
                why_kept?: string | null;
                /**
                 * @description How long such a memory matters.
                 * @enum {unknown}
                 */
                category: "foundational" | "operational" | "ephemeral" | "experimental";
                /** @description How sure the agent is. */
                confidence: number;
                /** @description How long it is expected to hold. */
                expected_decay?: {
                    /**
                     * @description In what way it ends.
                     * @enum {unknown}
                     */
                    type: "permanent" | "time-bound" | "conditional";
                    /** @description An ISO-8601 time, or the condition in words. */
                    until?: string | null;
                } | null;
                /** @description Ids of what it replaces. */
                supersedes?: string[];
            };
            /** @description Where it comes from. */
            provenance: {
                /**
                 * @description How the agent came to know it.
                 * @enum {unknown}
                 */
                source: "direct-experience" | "inference" | "received" | "aggregated";
                /** @description Who else knows it. */
                witnesses?: {
                    /** @description Who. */
                    agent: string;
                    /** @description Its signature over claim and salience, in base64. */
                    signature?: string | null;
                    /** @description When it was witnessed (ISO-8601). */
                    timestamp?: string | null;
                }[];
                /** @description The attestations it came through, oldest first. */
                chain?: (string | Record<string, never>)[];
            };
            /** @description What proves it. */
            signatures?: {
                /** @description The agent's signature over the canonical bytes (RFC 8785) of {claim, salience}, in base64. */
                agent_signature?: string | null;
                /** @description Ours, optional: the agent's signature over the canonical bytes of the whole attestation without signatures, in base64. Without it only claim and salience are signed. */
                full_signature?: string | null;
                /** @description sha256:<hex> of the canonical bytes of the attestation without signatures. */
                hash?: string | null;
                /**
                 * @description How agent_signature was made.
                 * @enum {unknown}
                 */
                algorithm?: "ed25519" | "rsa-sha256";
                /** @description The key it was made with, in base64. */
                public_key?: string | null;
            } | null;
        };
        /**
         * MEMORY_REQUEST
         * @description Asks an agent what it remembers. Fields that are not listed are allowed and ignored.
         */
        MrpRequest: {
            /** @description Where the message's own schema is published. */
            $schema?: string;
            /**
             * @description What kind of message this is.
             * @constant
             */
            type: "memory_request";
            /** @description The protocol's version; any 0.x is understood as far as 0.1 goes. */
            version: string;
            /** @description Which request this is, and how long it holds. */
            header: {
                /**
                 * Format: uuid
                 * @description A UUID of the requester's own; the same one with another body is declined.
                 */
                request_id: string;
                /**
                 * Format: date-time
                 * @description When it was made (ISO-8601; UTC when no zone is given).
                 */
                timestamp: string;
                /**
                 * @description For how long it may be answered.
                 * @default 300
                 */
                ttl_seconds?: number;
            };
            /** @description Who asks. */
            requester: {
                /** @description The requester's name. */
                agent_id: string;
                /** @description Its key: base64 of the raw 32 bytes of an Ed25519 key, or of an RSA key in DER. By itself it proves nothing; see signature. */
                public_key?: string;
                /** @description What the requester says about itself. Nothing of it is believed without a vouch kept here. */
                trust_context?: {
                    /** @description Who could vouch for the requester. */
                    vouchers?: string[];
                    /** @description Domains the requester claims to know. */
                    capabilities?: string[];
                };
            };
            /** @description What is asked: in words, or by conditions, or both. */
            query: {
                /** @description The question, in plain words. */
                natural?: string;
                /** @description Conditions; all that are given must hold. */
                structured?: {
                    /** @description Only memories of this project, or with this tag. */
                    domain?: string;
                    /** @description Only memories that hold at least one of these; those that hold more come first. */
                    keywords?: string[];
                    /** @description Only memories written within it; both ends belong to it. */
                    time_range?: {
                        /**
                         * Format: date-time
                         * @description Not before (ISO-8601).
                         */
                        after?: string;
                        /**
                         * Format: date-time
                         * @description Not after (ISO-8601).
                         */
                        before?: string;
                    };
                    /** @description What memories must have going for them. */
                    filters?: {
                        /** @description At least this trust in the author, as the responder sees it. */
                        min_trust_level?: number;
                        /** @description Only with references, witnesses or a chain. */
                        require_evidence?: boolean;
                        /** @description Only if a valid vouch for the author is known. */
                        require_vouches?: boolean;
                    };
                };
            };
            /** @description How the answer should be. */
            response_preferences?: {
                /**
                 * @description attestation is always sent; summary and raw add a text beside it.
                 * @default attestation
                 * @enum {unknown}
                 */
                format?: "attestation" | "summary" | "raw";
                /**
                 * @description How many results at most.
                 * @default 10
                 */
                max_results?: number;
                /**
                 * @description Whether to send meta; a signed response carries it in any case.
                 * @default true
                 */
                include_meta?: boolean;
                /**
                 * @description Whether to sign the response.
                 * @default false
                 */
                sign_response?: boolean;
            };
            /** @description Ours, optional: whom the message is meant for, so that nobody can send it on: the responder's public key, the origin of its address (https://example.org), or the name its operator has set. Meant for anyone else it is refused; without it a signature opens only what is everyone's. */
            audience?: string;
            /** @description Ours, optional: made with requester.public_key over the canonical bytes (RFC 8785) of this message without this field. It proves that the requester holds the key. */
            signature?: {
                /**
                 * @description How it was made.
                 * @default ed25519
                 * @enum {unknown}
                 */
                algorithm?: "ed25519" | "rsa-sha256";
                /** @description The signature, in base64. */
                value: string;
            };
        };
        /**
         * MEMORY_RESPONSE
         * @description What a responder answers. Fields that are not listed are allowed and ignored.
         */
        MrpResponse: {
            /** @description Where the message's own schema is published. */
            $schema?: string;
            /**
             * @description What kind of message this is.
             * @constant
             */
            type: "memory_response";
            /** @description The protocol's version; any 0.x is understood as far as 0.1 goes. */
            version: string;
            /** @description Which response this is, and to which request. */
            header: {
                /**
                 * Format: uuid
                 * @description The request's own.
                 */
                request_id: string;
                /**
                 * Format: uuid
                 * @description The response's own.
                 */
                response_id: string;
                /**
                 * Format: date-time
                 * @description When it was made (ISO-8601, UTC).
                 */
                timestamp: string;
            };
            /** @description Who answers. */
            responder: {
                /** @description The responder's name. */
                agent_id: string;
                /** @description The key its signatures are made with, in base64. */
                public_key?: string;
            };
            /** @description How it went. */
            status: {
                /**
                 * @description success, partial (something kept it from being complete), no_match, declined or error.
                 * @enum {unknown}
                 */
                code: "success" | "partial" | "no_match" | "declined" | "error";
                /** @description The same in words. */
                message: string;
            };
            /** @description What was found, best first. */
            results: {
                /**
                 * Format: uuid
                 * @description Its id at the responder.
                 */
                memory_id: string;
                /** @description The memory, as its agent attests to it. */
                attestation: components["schemas"]["MrpAttestationV1"];
                /** @description How well it answers. */
                relevance_score: number;
                /** @description Why it matched. */
                match_context: string;
                /** @description Its text: whole for raw, its beginning for summary. */
                text?: string;
            }[];
            /** @description About the answer. */
            meta?: {
                /** @description How many matched, before max_results. */
                total_matches: number;
                /** @description How many are sent. */
                returned: number;
                /** @description How long it took. */
                processing_time_ms: number;
                /** @description How far the requester was trusted. */
                trust_level_used: number;
            };
            /** @description The responder's signature over the canonical bytes (RFC 8785) of {results, meta, timestamp}. */
            signature?: {
                /**
                 * @description How it was made.
                 * @enum {unknown}
                 */
                algorithm: "ed25519" | "rsa-sha256";
                /** @description The signature, in base64. */
                value: string;
                /** @description What it covers. */
                signed_fields: string[];
            };
        };
        /**
         * MEMORY_VERIFY
         * @description Asks the responder how far one of its memories can be trusted. Fields that are not listed are allowed and ignored.
         */
        MrpVerify: {
            /** @description Where the message's own schema is published. */
            $schema?: string;
            /**
             * @description What kind of message this is.
             * @constant
             */
            type: "memory_verify";
            /** @description The protocol's version; any 0.x is understood as far as 0.1 goes. */
            version: string;
            /** @description Which verification this is. */
            header: {
                /**
                 * Format: uuid
                 * @description A UUID of the sender's own; the same one with another body is rejected.
                 */
                verify_id: string;
                /**
                 * Format: date-time
                 * @description When it was made (ISO-8601).
                 */
                timestamp: string;
                /**
                 * @description Ours, optional: for how long it may be answered, as in a request.
                 * @default 300
                 */
                ttl_seconds?: number;
            };
            /** @description What to verify. */
            target: {
                /** @description The memory's id, from the response. */
                memory_id: string;
                /** @description sha256 of the attestation as it was received, in hex, with or without `sha256:`. */
                attestation_hash: string;
            };
            /** @description Which checks to make; all of them when this is left out. */
            checks?: ("signature" | "evidence" | "vouches" | "freshness" | "consistency")[];
            /** @description Ours, optional: who asks, where no token says so. */
            requester?: {
                /** @description The requester's name. */
                agent_id: string;
                /** @description Its key: base64 of the raw 32 bytes of an Ed25519 key, or of an RSA key in DER. By itself it proves nothing; see signature. */
                public_key?: string;
                /** @description What the requester says about itself. Nothing of it is believed without a vouch kept here. */
                trust_context?: {
                    /** @description Who could vouch for the requester. */
                    vouchers?: string[];
                    /** @description Domains the requester claims to know. */
                    capabilities?: string[];
                };
            };
            /** @description Ours, optional: whom the message is meant for, so that nobody can send it on: the responder's public key, the origin of its address (https://example.org), or the name its operator has set. Meant for anyone else it is refused; without it a signature opens only what is everyone's. */
            audience?: string;
            /** @description Ours, optional: as in a request. */
            signature?: {
                /**
                 * @description How it was made.
                 * @default ed25519
                 * @enum {unknown}
                 */
                algorithm?: "ed25519" | "rsa-sha256";
                /** @description The signature, in base64. */
                value: string;
            };
        };
        /**
         * VERIFY_RESULT
         * @description What the responder found. Fields that are not listed are allowed and ignored.
         */
        MrpVerifyResult: {
            /** @description Where the message's own schema is published. */
            $schema?: string;
            /**
             * @description What kind of message this is.
             * @constant
             */
            type: "verify_result";
            /** @description The protocol's version; any 0.x is understood as far as 0.1 goes. */
            version: string;
            /** @description Which verification this answers. */
            header: {
                /**
                 * Format: uuid
                 * @description The request's own.
                 */
                verify_id: string;
                /**
                 * Format: date-time
                 * @description When it was made (ISO-8601, UTC).
                 */
                timestamp: string;
            };
            /** @description Each check. */
            results: {
                /** @description Whether it is as it was sent, and signed. */
                signature: {
                    /**
                     * @description pass, fail, or skip when it was not asked for or cannot be decided here.
                     * @enum {unknown}
                     */
                    status: "pass" | "fail" | "skip";
                    /** @description What was found. */
                    detail: string;
                };
                /** @description What it rests on. */
                evidence: {
                    /**
                     * @description pass, fail, or skip when it was not asked for or cannot be decided here.
                     * @enum {unknown}
                     */
                    status: "pass" | "fail" | "skip";
                    /** @description How much of it can be looked at here. */
                    accessible_count: number;
                    /** @description How much there is. */
                    total_count: number;
                    /** @description What was found. */
                    detail?: string;
                };
                /** @description Who vouches for its author. */
                vouches: {
                    /**
                     * @description pass, fail, or skip when it was not asked for or cannot be decided here.
                     * @enum {unknown}
                     */
                    status: "pass" | "fail" | "skip";
                    /** @description How many valid vouches there are. */
                    vouch_count: number;
                    /** @description Whose vouches are trusted here. */
                    trusted_vouchers: string[];
                    /** @description What was found. */
                    detail?: string;
                };
                /** @description Whether it is still of use. */
                freshness: {
                    /**
                     * @description pass, fail, or skip when it was not asked for or cannot be decided here.
                     * @enum {unknown}
                     */
                    status: "pass" | "fail" | "skip";
                    /** @description Its age. */
                    age_days: number;
                    /** @description What was found. */
                    detail?: string;
                };
                /** @description Whether something here contradicts it. */
                consistency: {
                    /**
                     * @description pass, fail, or skip when it was not asked for or cannot be decided here.
                     * @enum {unknown}
                     */
                    status: "pass" | "fail" | "skip";
                    /** @description Ids of memories that do. */
                    conflicts: string[];
                    /** @description What was found. */
                    detail?: string;
                };
            };
            /** @description All of it in one. */
            aggregate: {
                /** @description From 0 to 1. */
                trust_score: number;
                /**
                 * @description What to do with it.
                 * @enum {unknown}
                 */
                recommendation: "accept" | "accept_with_caution" | "reject";
            };
        };
        /**
         * A vouch to keep
         * @description The body of POST /mrp/vouches. Fields that are not listed are allowed and ignored.
         */
        MrpVouch: {
            /** @description Where the message's own schema is published. */
            $schema?: string;
            /** @description The vouch schema's version. */
            version?: string;
            /** @description The vouch. */
            vouch: components["schemas"]["MrpVouchV1"];
        };
        /**
         * What became of a vouch
         * @description The answer of POST /mrp/vouches.
         */
        MrpVouchResponse: {
            /** @description The vouch's id. */
            vouch_id: string;
            /** @description Whether it counts now: signed by, or sent in by, a voucher trusted here, not expired, and not for itself. */
            counted: boolean;
        };
        /**
         * Vouch v1
         * @description One agent's word for another. Fields that are not listed are allowed and ignored. They are kept and shown as they came.
         */
        MrpVouchV1: {
            /** @description The vouch's id. */
            id: string;
            /**
             * Format: date-time
             * @description When it was given (ISO-8601).
             */
            created_at: string;
            /** @description Who vouches. */
            voucher: {
                /** @description Its name. */
                agent_id: string;
                /** @description Its key, in base64. */
                public_key?: string | null;
            };
            /** @description For whom. */
            subject: {
                /** @description Its name. */
                agent_id: string;
                /** @description Which of its capabilities. */
                capability_id?: string | null;
                /** @description Ours, optional: the key the voucher knows it by, in base64. */
                public_key?: string | null;
            };
            /** @description What is vouched for. */
            claim: {
                /** @description In which domain. */
                domain: string;
                /** @description What is vouched for, in words. */
                statement: string;
                /**
                 * @description How good it is at it.
                 * @enum {unknown}
                 */
                level: "learning" | "competent" | "expert" | "authority";
            };
            /** @description How the voucher knows. */
            evidence?: {
                /** @description How it was found out. */
                context?: string | null;
                /** @description Where they met. */
                interaction_refs?: (string | Record<string, never>)[];
                /** @description What came of it. */
                outcome?: string | null;
            } | null;
            /** @description How sure the voucher is. */
            confidence?: {
                /**
                 * @description How sure.
                 * @enum {unknown}
                 */
                level: "high" | "medium" | "low";
                /** @description Why. */
                reason?: string | null;
            } | null;
            /** @description How far it goes. */
            scope?: {
                /** @description Until when (ISO-8601); without it, until it is withdrawn. */
                valid_until?: string | null;
                /** @description Under which conditions, in words. */
                conditions?: string | null;
            } | null;
            /** @description What proves it. */
            signatures?: {
                /** @description The voucher's signature over the canonical bytes (RFC 8785) of the vouch without signatures, in base64. */
                voucher_signature?: string | null;
                /** @description sha256:<hex> of the same bytes. */
                hash?: string | null;
                /**
                 * @description How voucher_signature was made.
                 * @enum {unknown}
                 */
                algorithm?: "ed25519" | "rsa-sha256";
            } | null;
        };
        /**
         * Vouches
         * @description The answer of GET /mrp/vouches.
         */
        MrpVouchesResponse: {
            /** @description The vouches that are kept and have not expired, as they came. */
            vouches: components["schemas"]["MrpVouchV1"][];
            /** @description Where to go on, where there are more: the cursor of the next request. */
            next_cursor?: string;
        };
        /**
         * embeddings request
         * @description Vectors for texts, as the OpenAI API asks for them.
         */
        OpenaiEmbeddings: {
            /** @description A text or a list of texts. */
            input: string | string[];
            /** @description Any name: the store has one embedder, which the answer names. */
            model?: string;
            /**
             * @description Numbers, or base64 of little-endian float32.
             * @default float
             * @enum {unknown}
             */
            encoding_format?: "float" | "base64";
            /** @description Must be the embedder's own. */
            dimensions?: number;
            /** @description Not used. */
            user?: string;
            /**
             * @description Also the vectors of each text's tokens, of an embedder that has them.
             * @default false
             */
            token_vectors?: boolean;
        };
        /**
         * embeddings response
         * @description One vector for each text, in order.
         */
        OpenaiEmbeddingsResponse: {
            /**
             * @description Always list.
             * @constant
             */
            object: "list";
            /** @description The vectors. */
            data: {
                /**
                 * @description Always embedding.
                 * @constant
                 */
                object: "embedding";
                /** @description The place of its text. */
                index: number;
                /** @description The vector. */
                embedding: number[] | string;
                /** @description Of its tokens, where they were asked for and the embedder has them: base64, of little-endian float32 where nothing else is said. */
                token_vectors?: {
                    /** @description Their vectors, one after the other. */
                    tokens: string;
                    /** @description How much each counts in a question. */
                    weights: string;
                    /** @description For each, a byte: 1 where it is worth keeping of a memory. */
                    kept: string;
                };
            }[];
            /** @description The embedder. */
            model: string;
            /** @description How much text there was, estimated. */
            usage: {
                /** @description Tokens, about. */
                prompt_tokens: number;
                /** @description The same. */
                total_tokens: number;
            };
        };
        /**
         * OpenWOP delete response
         * @description What came of it.
         */
        OpenwopDeleteResponse: {
            /** @description The memory that was meant. */
            memoryRef: string;
            /** @description The entry's id, given by the host. */
            memoryId: string;
            /** @description Whether it was there. */
            removed: boolean;
            /**
             * @description True while the deletion waits for approval, and the entry is still there; absent otherwise.
             * @constant
             */
            pendingApproval?: true;
            /** @description Where a person decides about it; absent when nothing waits, or no server shows it. */
            approvalUrl?: string;
        };
        /**
         * OpenWOP discovery document
         * @description What this host offers, at its root and again under capabilities.
         */
        OpenwopDiscoveryResponse: {
            /** @description The agents block. */
            agents: {
                /**
                 * @description Always true.
                 * @constant
                 */
                supported: true;
                /** @description What can be named as backend; longTerm only while redaction is on. */
                memoryBackends: ("scratchpad" | "conversation" | "longTerm" | "long-term")[];
            };
            /** @description The memory block. */
            memory: {
                /**
                 * @description Always true.
                 * @constant
                 */
                supported: true;
                /**
                 * @description The most UTF-8 bytes of content that one entry may be written with.
                 * @constant
                 */
                maxEntrySizeBytes: 65536;
                /**
                 * @description Always true: expiresAt is honoured.
                 * @constant
                 */
                ttlSupported: true;
                /** @description How the tokenBudget of a list is counted: by characters, four to a token. */
                injectionBudget: {
                    /**
                     * @description Always true.
                     * @constant
                     */
                    supported: true;
                    /**
                     * @description Always chars.
                     * @constant
                     */
                    tokenCounter: "chars";
                };
            };
            /** @description The same again, where the document itself has it. */
            capabilities: {
                /** @description The agents block. */
                agents: {
                    /**
                     * @description Always true.
                     * @constant
                     */
                    supported: true;
                    /** @description What can be named as backend; longTerm only while redaction is on. */
                    memoryBackends: ("scratchpad" | "conversation" | "longTerm" | "long-term")[];
                };
                /** @description The memory block. */
                memory: {
                    /**
                     * @description Always true.
                     * @constant
                     */
                    supported: true;
                    /**
                     * @description The most UTF-8 bytes of content that one entry may be written with.
                     * @constant
                     */
                    maxEntrySizeBytes: 65536;
                    /**
                     * @description Always true: expiresAt is honoured.
                     * @constant
                     */
                    ttlSupported: true;
                    /** @description How the tokenBudget of a list is counted: by characters, four to a token. */
                    injectionBudget: {
                        /**
                         * @description Always true.
                         * @constant
                         */
                        supported: true;
                        /**
                         * @description Always chars.
                         * @constant
                         */
                        tokenCounter: "chars";
                    };
                };
            };
            /** @description The workflows that can be started at /v1/runs, where the operator asked for them. */
            fixtures?: string[];
        };
        /**
         * OpenWOP end response
         * @description The run is over.
         */
        OpenwopEndResponse: {
            /** @description The run. */
            runId: string;
            /**
             * @description Always true.
             * @constant
             */
            ended: true;
        };
        /**
         * OpenWOP error
         * @description What a caller is told when a request fails.
         */
        OpenwopErrorResponse: {
            /**
             * @description What kind of fault it is.
             * @enum {unknown}
             */
            error: "validation_error" | "unauthenticated" | "forbidden" | "not_found" | "conflict" | "payload_too_large" | "secret_leakage" | "rate_limited" | "unavailable";
            /** @description One sentence for a person. */
            message: string;
            /** @description More about it, such as the field that is wrong. */
            details?: {
                [key: string]: unknown;
            };
        };
        /**
         * OpenWOP get response
         * @description The entry.
         */
        OpenwopGetResponse: {
            /** @description The memory that was meant. */
            memoryRef: string;
            /** @description The entry. */
            entry: components["schemas"]["OpenwopMemoryEntry"];
        };
        /**
         * OpenWOP list response
         * @description The entries.
         */
        OpenwopListResponse: {
            /** @description The memory that was meant. */
            memoryRef: string;
            /** @description The entries, at most 500. */
            entries: components["schemas"]["OpenwopMemoryEntry"][];
        };
        /**
         * OpenWOP MemoryEntry
         * @description One entry of a memory.
         */
        OpenwopMemoryEntry: {
            /** @description The entry's id, given by the host. */
            id: string;
            /** @description What is remembered, without secrets. */
            content: string;
            /** @description Its tags. */
            tags: string[];
            /**
             * Format: date-time
             * @description When it was written, in ISO-8601.
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description When it stops being shown, in ISO-8601.
             */
            expiresAt?: string;
        };
        /**
         * OpenWOP entry to write
         * @description An entry without what the host gives it. An optional field is left out, never null.
         */
        OpenwopNewEntry: {
            /** @description What to remember: up to 65,536 bytes of UTF-8, which must not be blank. */
            content: string;
            /** @description Free-form tags; empty ones are dropped. */
            tags?: string[];
            /**
             * Format: date-time
             * @description When it stops being shown, in ISO-8601; without a zone it means UTC. In the future.
             */
            expiresAt?: string;
        };
        /**
         * OpenWOP put request
         * @description Write an entry. An optional field is left out, never null.
         */
        OpenwopPutRequest: {
            /** @description The memory that is meant: one issued here (mem_…), or the name of an agent. May be left out where the run was started with one. */
            memoryRef?: string;
            /** @description The run to read or write within; what it reads is as it was at its start. */
            runId?: string;
            /**
             * @description Which memory: what lasts (longTerm, also spelled long-term), or what the run notes for itself.
             * @default longTerm
             * @enum {unknown}
             */
            backend?: "scratchpad" | "conversation" | "longTerm" | "long-term";
            /** @description The entry, without an id. */
            entry: components["schemas"]["OpenwopNewEntry"];
        };
        /**
         * OpenWOP put response
         * @description The entry as it was kept.
         */
        OpenwopPutResponse: {
            /** @description The memory that was meant. */
            memoryRef: string;
            /** @description The entry. */
            entry: components["schemas"]["OpenwopMemoryEntry"];
            /**
             * @description True while it waits for approval and cannot be read; absent otherwise.
             * @constant
             */
            pendingApproval?: true;
            /** @description Where a person decides about it; absent when nothing waits, or no server shows it. */
            approvalUrl?: string;
        };
        /**
         * OpenWOP ref request
         * @description Get the memoryRef that stands for an agent's memory in your tenant. An optional field is left out, never null.
         */
        OpenwopRefRequest: {
            /** @description The agent whose memory it is. */
            agent: string;
            /** @description Only this project's entries; without it, all of the agent's. */
            namespace?: string;
        };
        /**
         * OpenWOP ref response
         * @description The memoryRef.
         */
        OpenwopRefResponse: {
            /** @description An opaque handle: the same one whenever the same is asked for. */
            memoryRef: string;
        };
        /**
         * OpenWOP run request
         * @description Start a run. An optional field is left out, never null.
         */
        OpenwopRunRequest: {
            /** @description The memory that calls within the run mean when they name none. */
            memoryRef?: string;
            /** @description Labels and values that must not be in anything the run writes, together at most 262,144 characters; kept in memory only. */
            secrets?: {
                [key: string]: string;
            };
        };
        /**
         * OpenWOP run response
         * @description The run.
         */
        OpenwopRunResponse: {
            /** @description The run. */
            runId: string;
            /** @description An opaque name for what the run sees. */
            snapshot: string;
        };
        /**
         * memorywire policies dry run request
         * @description What these rules would have caught. An optional field is left out, never null.
         */
        PoliciesDryRunRequest: {
            /** @description The rules, in the order in which they are asked. */
            rules: {
                /** @description By which it is known. */
                name: string;
                /** @description All conditions that are given must hold; of a list, one. Without any it covers every write. */
                when?: {
                    /** @description Whose memory. */
                    agent?: string[];
                    /** @description The person it is about. */
                    user?: string[];
                    /** @description The memory's type. */
                    type?: ("semantic" | "episodic" | "procedural" | "emotional")[];
                    /** @description What the writing protocol called it; a statement of the graph is a `statement`. */
                    kind?: string[];
                    /** @description Where it comes from. */
                    source?: string[];
                    /** @description The protocol it came by, or import. */
                    dialect?: ("memorywire" | "amp" | "mrp" | "openwop" | "trusty" | "import")[];
                    /** @description Who asks: a token's name. */
                    principal?: string[];
                    /** @description What is done; every write when left out. remember also covers text that comes in by an update or a merge; recall is the read side. */
                    operation?: ("remember" | "update" | "forget" | "merge" | "statement" | "attestation" | "recall")[];
                    /** @description A regular expression (RE2) that one of its texts matches. */
                    content?: string;
                    /** @description What was found in it: a label of redaction, `zero_width` or `bidi`; `*` stands for any text. */
                    findings?: string[];
                    /** @description Only what is less sure than this. */
                    confidence_below?: number;
                    /** @description What its privacy_intent says: whether there is one (true, false), or whom it is shared with. */
                    privacy_intent?: {
                        /** @description Whether it is kept for a time only. */
                        retain?: boolean;
                        /** @description Whether a consent is named. */
                        user_consent_id?: boolean;
                        /** @description One of those it is shared with. */
                        share_with?: string[];
                    };
                };
                /**
                 * @description What happens: allow, review (it waits for a person), reject (on recall: it is withheld) or redact.
                 * @enum {unknown}
                 */
                action: "allow" | "review" | "reject" | "redact";
                /** @description Why, shown to whoever is refused and to reviewers. */
                note?: string;
            }[];
            /**
             * @description How far back.
             * @default 30
             */
            days?: number;
        };
        /**
         * memorywire policies dry run response
         * @description What the rules would have caught.
         */
        PoliciesDryRunResponse: {
            /** @description How many writes were looked at. */
            looked_at: number;
            /** @description How many each rule would have caught, by its name. */
            counts: {
                [key: string]: unknown;
            };
            /** @description The newest of them, at most 1,000. */
            caught: {
                /** @description The rule's name. */
                rule: string;
                /**
                 * @description What it would have done.
                 * @enum {unknown}
                 */
                action: "allow" | "review" | "reject" | "redact";
                /**
                 * @description What was done.
                 * @enum {unknown}
                 */
                operation: "remember" | "update" | "forget" | "merge" | "statement" | "attestation" | "recall";
                /** @description Whose memory. */
                agent_id: string;
                /** @description Who did it. */
                principal: string;
                /** @description When. Milliseconds since the Unix epoch. */
                at: number;
                /** @description The memory or statement. */
                id?: string;
                /** @description The beginning of what it says. */
                content?: string;
            }[];
        };
        /**
         * memorywire learned policies response
         * @description What reviewers always approve, the most often approved first.
         */
        PoliciesLearnedResponse: {
            /** @description The patterns. */
            learned: {
                /** @description Its id. */
                id: string;
                /** @description How many approvals in a row. */
                approved: number;
                /** @description What makes two writes of one kind. */
                pattern: {
                    /** @description The rule that caught them. */
                    rule?: string;
                    /** @description What is done. */
                    operation?: string;
                    /** @description Whose memory. */
                    agent?: string;
                    /** @description Who writes. */
                    principal?: string;
                    /** @description The protocol. */
                    dialect?: string;
                    /** @description The memory's type. */
                    type?: string;
                    /** @description What the protocol calls it. */
                    kind?: string;
                    /** @description Where it comes from. */
                    source?: string;
                };
                /** @description Whether it is allowed without a review by now. */
                auto_allow: boolean;
            }[];
        };
        /**
         * memorywire policies request
         * @description The rules of a tenant, all of them. An optional field is left out, never null.
         */
        PoliciesRequest: {
            /** @description The rules, in the order in which they are asked. */
            rules: {
                /** @description By which it is known. */
                name: string;
                /** @description All conditions that are given must hold; of a list, one. Without any it covers every write. */
                when?: {
                    /** @description Whose memory. */
                    agent?: string[];
                    /** @description The person it is about. */
                    user?: string[];
                    /** @description The memory's type. */
                    type?: ("semantic" | "episodic" | "procedural" | "emotional")[];
                    /** @description What the writing protocol called it; a statement of the graph is a `statement`. */
                    kind?: string[];
                    /** @description Where it comes from. */
                    source?: string[];
                    /** @description The protocol it came by, or import. */
                    dialect?: ("memorywire" | "amp" | "mrp" | "openwop" | "trusty" | "import")[];
                    /** @description Who asks: a token's name. */
                    principal?: string[];
                    /** @description What is done; every write when left out. remember also covers text that comes in by an update or a merge; recall is the read side. */
                    operation?: ("remember" | "update" | "forget" | "merge" | "statement" | "attestation" | "recall")[];
                    /** @description A regular expression (RE2) that one of its texts matches. */
                    content?: string;
                    /** @description What was found in it: a label of redaction, `zero_width` or `bidi`; `*` stands for any text. */
                    findings?: string[];
                    /** @description Only what is less sure than this. */
                    confidence_below?: number;
                    /** @description What its privacy_intent says: whether there is one (true, false), or whom it is shared with. */
                    privacy_intent?: {
                        /** @description Whether it is kept for a time only. */
                        retain?: boolean;
                        /** @description Whether a consent is named. */
                        user_consent_id?: boolean;
                        /** @description One of those it is shared with. */
                        share_with?: string[];
                    };
                };
                /**
                 * @description What happens: allow, review (it waits for a person), reject (on recall: it is withheld) or redact.
                 * @enum {unknown}
                 */
                action: "allow" | "review" | "reject" | "redact";
                /** @description Why, shown to whoever is refused and to reviewers. */
                note?: string;
            }[];
        };
        /**
         * memorywire policies response
         * @description The rules in force: those of the configuration come first and cannot be changed here.
         */
        PoliciesResponse: {
            /** @description The tenant's own rules. */
            rules: {
                /** @description By which it is known. */
                name: string;
                /** @description All conditions that are given must hold; of a list, one. Without any it covers every write. */
                when?: {
                    /** @description Whose memory. */
                    agent?: string[];
                    /** @description The person it is about. */
                    user?: string[];
                    /** @description The memory's type. */
                    type?: ("semantic" | "episodic" | "procedural" | "emotional")[];
                    /** @description What the writing protocol called it; a statement of the graph is a `statement`. */
                    kind?: string[];
                    /** @description Where it comes from. */
                    source?: string[];
                    /** @description The protocol it came by, or import. */
                    dialect?: ("memorywire" | "amp" | "mrp" | "openwop" | "trusty" | "import")[];
                    /** @description Who asks: a token's name. */
                    principal?: string[];
                    /** @description What is done; every write when left out. remember also covers text that comes in by an update or a merge; recall is the read side. */
                    operation?: ("remember" | "update" | "forget" | "merge" | "statement" | "attestation" | "recall")[];
                    /** @description A regular expression (RE2) that one of its texts matches. */
                    content?: string;
                    /** @description What was found in it: a label of redaction, `zero_width` or `bidi`; `*` stands for any text. */
                    findings?: string[];
                    /** @description Only what is less sure than this. */
                    confidence_below?: number;
                    /** @description What its privacy_intent says: whether there is one (true, false), or whom it is shared with. */
                    privacy_intent?: {
                        /** @description Whether it is kept for a time only. */
                        retain?: boolean;
                        /** @description Whether a consent is named. */
                        user_consent_id?: boolean;
                        /** @description One of those it is shared with. */
                        share_with?: string[];
                    };
                };
                /**
                 * @description What happens: allow, review (it waits for a person), reject (on recall: it is withheld) or redact.
                 * @enum {unknown}
                 */
                action: "allow" | "review" | "reject" | "redact";
                /** @description Why, shown to whoever is refused and to reviewers. */
                note?: string;
            }[];
            /** @description The rules of commonplace.toml, which are asked first. */
            configured: {
                /** @description By which it is known. */
                name: string;
                /** @description All conditions that are given must hold; of a list, one. Without any it covers every write. */
                when?: {
                    /** @description Whose memory. */
                    agent?: string[];
                    /** @description The person it is about. */
                    user?: string[];
                    /** @description The memory's type. */
                    type?: ("semantic" | "episodic" | "procedural" | "emotional")[];
                    /** @description What the writing protocol called it; a statement of the graph is a `statement`. */
                    kind?: string[];
                    /** @description Where it comes from. */
                    source?: string[];
                    /** @description The protocol it came by, or import. */
                    dialect?: ("memorywire" | "amp" | "mrp" | "openwop" | "trusty" | "import")[];
                    /** @description Who asks: a token's name. */
                    principal?: string[];
                    /** @description What is done; every write when left out. remember also covers text that comes in by an update or a merge; recall is the read side. */
                    operation?: ("remember" | "update" | "forget" | "merge" | "statement" | "attestation" | "recall")[];
                    /** @description A regular expression (RE2) that one of its texts matches. */
                    content?: string;
                    /** @description What was found in it: a label of redaction, `zero_width` or `bidi`; `*` stands for any text. */
                    findings?: string[];
                    /** @description Only what is less sure than this. */
                    confidence_below?: number;
                    /** @description What its privacy_intent says: whether there is one (true, false), or whom it is shared with. */
                    privacy_intent?: {
                        /** @description Whether it is kept for a time only. */
                        retain?: boolean;
                        /** @description Whether a consent is named. */
                        user_consent_id?: boolean;
                        /** @description One of those it is shared with. */
                        share_with?: string[];
                    };
                };
                /**
                 * @description What happens: allow, review (it waits for a person), reject (on recall: it is withheld) or redact.
                 * @enum {unknown}
                 */
                action: "allow" | "review" | "reject" | "redact";
                /** @description Why, shown to whoever is refused and to reviewers. */
                note?: string;
            }[];
        };
        /**
         * memorywire revoked policy response
         * @description What was taken back.
         */
        PoliciesRevokeResponse: {
            /** @description The pattern's id. */
            id: string;
            /**
             * @description Always true.
             * @constant
             */
            revoked: true;
        };
        /**
         * memorywire merge preview response
         * @description What a merge would make; nothing has been changed.
         */
        PreviewMergeResponse: {
            /** @description The memory that would be left. */
            survivor: components["schemas"]["Memory"];
            /** @description Those that would go. */
            losers: components["schemas"]["Memory"][];
        };
        /**
         * memorywire preview response
         * @description What a forget or an expire would touch; nothing has been changed.
         */
        PreviewResponse: {
            /** @description The memories, oldest first. */
            memories: components["schemas"]["Memory"][];
        };
        /**
         * memorywire procedure drawing
         * @description A procedure as a picture.
         */
        ProcedureDrawResponse: {
            /** @description The memory's id, as recall, list or remember gave it. */
            id: string;
            /**
             * @description What it is.
             * @enum {unknown}
             */
            format: "svg" | "mermaid";
            /** @description An SVG document, or the text of a Mermaid state diagram. */
            drawing: string;
        };
        /**
         * memorywire procedure fire request
         * @description Move a procedure by a trigger. An optional field is left out, never null.
         */
        ProcedureFireRequest: {
            /** @description The agent whose procedure it is; absent means every agent the caller may use. */
            agent_id?: string;
            /** @description The trigger to fire. */
            trigger: string;
            /** @description For each guard that the trigger depends on, whether it holds. */
            facts?: {
                [key: string]: boolean;
            };
            /** @description Refuse with a conflict unless the memory is at this version. */
            expected_version?: number;
            /**
             * @description Do nothing until a person approves it.
             * @default false
             */
            approval_required?: boolean;
            /** @description Why the caller wants this; shown to the reviewer when the request waits for approval. */
            reasoning?: string;
        };
        /**
         * memorywire procedure reset request
         * @description Put a procedure back to where it starts. An optional field is left out, never null.
         */
        ProcedureResetRequest: {
            /** @description The agent whose procedure it is; absent means every agent the caller may use. */
            agent_id?: string;
            /** @description Refuse with a conflict unless the memory is at this version. */
            expected_version?: number;
            /**
             * @description Do nothing until a person approves it.
             * @default false
             */
            approval_required?: boolean;
            /** @description Why the caller wants this; shown to the reviewer when the request waits for approval. */
            reasoning?: string;
        };
        /**
         * memorywire procedure
         * @description A procedure and where it stands.
         */
        ProcedureResponse: {
            /** @description The memory's id, as recall, list or remember gave it. */
            id: string;
            /** @description The agent whose memory this is; nothing is read or written across agents. */
            agent_id: string;
            /** @description Counts the changes; expected_version of an update refers to it. */
            version: number;
            /** @description What the procedure is called. */
            name: string;
            /** @description Where it stands. */
            state: string;
            /** @description Where it starts. */
            initial: string;
            /** @description Every state. */
            states: string[];
            /** @description What can be fired from here, if its guards allow it. */
            possible: {
                /** @description The trigger. */
                trigger: string;
                /** @description The state that it leads to. */
                dest: string;
                /** @description Facts that must hold. */
                conditions?: string[];
                /** @description Facts that must not hold. */
                unless?: string[];
            }[];
            /** @description Whether the request waits for approval. */
            pending_approval?: boolean;
            /** @description The review that it waits for; absent when nothing waits for approval. */
            review_id?: string;
            /** @description Where a person can review it; null or absent when nothing waits for approval. */
            approval_url?: string | null;
            /** @description The stores beside the primary that have not done it yet, with the reason; absent when all have. */
            errors?: {
                /** @description The store's name. */
                store: string;
                /** @description What went wrong. */
                error: string;
            }[];
        };
        /**
         * memorywire recall request
         * @description Find the memories that answer a query. An optional field is left out, never null.
         */
        RecallRequest: {
            /** @description The agent whose memory this is; nothing is read or written across agents. */
            agent_id: string;
            /** @description What to look for, in plain words. */
            query: string;
            /** @description Only memories of this person; absent means all users of the agent. */
            user_id?: string;
            /**
             * @description How many results at most.
             * @default 5
             */
            k?: number;
            /** @description Only these types of memory; absent or empty means all four. */
            types?: ("semantic" | "episodic" | "procedural" | "emotional")[];
            /**
             * @description How far to follow the graph when boosting related results.
             * @default 0
             */
            hops?: number;
            /**
             * @description How the stores' lists become one: by rank, by best score, or by weighted scores.
             * @default rrf
             * @enum {unknown}
             */
            fusion?: "rrf" | "max" | "weighted";
            /** @description Conditions every result must meet, applied before the best are chosen. Keys name a metadata field (dots reach inside) or a column of the record; a scalar means equality, a list any of them, and an object holds operators: $gt $gte $lt $lte $ne $in $nin $exists $contains. All keys must hold. */
            filter?: {
                [key: string]: unknown;
            };
            /** @description Only memories created within this many days. */
            fresher_than_days?: number;
            /** @description Only results whose calibrated relevance is at least this; 0 turns the default cut-off off. */
            min_score?: number;
            /** @description Answer as the memory stood at this instant. Milliseconds since the Unix epoch. */
            as_of?: number;
            /**
             * @description Give every rank, score and share behind the answer.
             * @default false
             */
            explain?: boolean;
            /** @description Only results that at least this many stores agree on. */
            quorum_k?: number;
            /**
             * @description Look in the shared space too.
             * @default false
             */
            include_shared?: boolean;
            /**
             * @description Whether a configured judge re-ranks the results: when it helps, never, or every time.
             * @default auto
             * @enum {unknown}
             */
            judge?: "auto" | "off" | "always";
        };
        /**
         * memorywire recall response
         * @description The memories found, best first. An optional field is left out, never null.
         */
        RecallResponse: {
            /** @description Best first; empty when nothing is relevant enough. */
            results: {
                /** @description The memory's id, the same in every store. */
                id: string;
                /**
                 * @description Which of the four kinds of memory this is; kept through every store.
                 * @enum {unknown}
                 */
                type: "semantic" | "episodic" | "procedural" | "emotional";
                /** @description The content as it was written; an object where a store keeps a procedure as one. */
                content: string | Record<string, never>;
                /** @description Orders the results of this answer, best first: what fusion makes of the ranks, times the demotion. It cannot be compared with that of another question; relevance can. */
                score: number;
                /** @description Free-form JSON, kept and shown back as written. At most 100 levels deep. */
                metadata?: {
                    [key: string]: unknown;
                };
                /** @description When it was written. Milliseconds since the Unix epoch. */
                created_at?: number;
                /** @description Memories that contributed to the score. */
                supporting?: string[];
                /** @description The store whose copy this is. */
                source_store?: string;
                /** @description How sure the writer was. */
                confidence?: number;
                /** @description Where the content came from. */
                source?: string;
                /** @description The person it is about or came from. */
                user_id?: string;
                /** @description When it stops being visible. Milliseconds since the Unix epoch. */
                expires_at?: number;
                /** @description How likely it is to answer the query, calibrated so that it compares across queries. */
                relevance?: number;
                /** @description What a demotion has left of the score, such as 0.25; absent for what was not demoted. It is part of score and not of relevance. */
                demotion?: number;
                /** @description The serving store's signature over this result. */
                signature?: string;
                /** @description The ranks, scores and shares behind this result; only when asked for. */
                explain?: {
                    [key: string]: unknown;
                };
            }[];
            /**
             * @description The fusion that was applied.
             * @enum {unknown}
             */
            fusion_used: "rrf" | "max" | "weighted";
            /** @description The stores that were asked. */
            stores_queried: string[];
            /** @description How long it took, in whole milliseconds. */
            latency_ms: number;
            /** @description How the query was answered as a whole; only when asked for. */
            explain?: {
                [key: string]: unknown;
            };
            /** @description Something the caller should know about how it was answered, such as "keyword-only". */
            note?: string;
            /** @description The stores that failed, with the reason; absent when all answered. */
            errors?: {
                /** @description The store's name. */
                store: string;
                /** @description What went wrong. */
                error: string;
            }[];
        };
        /**
         * memorywire recover request
         * @description Put back what came from a bad source, and what was made from it. All that is given must hold; a source, a principal or a time must be. An optional field is left out, never null.
         */
        RecoverRequest: {
            /** @description What memories say they come from, as `source` of remember. */
            source?: string;
            /** @description Who wrote, as the audit trail names them. */
            principal?: string;
            /** @description Only what was done from then on. Milliseconds since the Unix epoch. */
            since?: number;
            /** @description Only memories of this agent; by default of every agent. */
            agent_id?: string;
            /**
             * @description Say what would be put back; nothing is changed.
             * @default false
             */
            dry_run?: boolean;
        };
        /**
         * memorywire recover response
         * @description What was put back, or would be. An optional field is left out, never null.
         */
        RecoverResponse: {
            /** @description Undoes it; left out where nothing was changed. */
            recovery_id?: string;
            /** @description Each memory and statement. */
            affected: {
                /** @description Which. */
                id: string;
                /** @description Whose. */
                agent_id: string;
                /**
                 * @description A memory, or a statement of the graph.
                 * @enum {unknown}
                 */
                kind: "memory" | "statement";
                /**
                 * @description quarantine: it never was good and is hidden everywhere; revert: it is as it was before; rank: it is no longer demoted; never_stated: it holds at no time; reopen: it holds again.
                 * @enum {unknown}
                 */
                action: "quarantine" | "revert" | "rank" | "never_stated" | "reopen";
                /** @description Whether it came from the bad source itself, and is not only made from it. */
                direct: boolean;
                /** @description The entry of the audit trail by which it went bad; 0 where that is not told. */
                entry: number;
                /** @description The version it is again. */
                back_to?: number;
            }[];
            /** @description How many they had erased for good, which nothing brings back. */
            erased: number;
            /** @description The stores beside the primary that have not done it yet, with the reason; absent when all have. */
            errors?: {
                /** @description The store's name. */
                store: string;
                /** @description What went wrong. */
                error: string;
            }[];
        };
        /**
         * memorywire remember batch request
         * @description Write many memories; each has its own outcome.
         */
        RememberBatchRequest: {
            /** @description Remember requests; one that is wrong does not keep the others out. */
            items: {
                [key: string]: unknown;
            }[];
        };
        /**
         * memorywire remember batch response
         * @description What became of each item, in the order given.
         */
        RememberBatchResponse: {
            /** @description The outcomes. */
            results: (components["schemas"]["RememberResponse"] | components["schemas"]["ErrorResponse"])[];
        };
        /**
         * memorywire remember request
         * @description Write a new memory. An optional field is left out, never null.
         */
        RememberRequest: {
            /** @description The agent whose memory this is; nothing is read or written across agents. */
            agent_id: string;
            /**
             * @description Which of the four kinds of memory this is; kept through every store.
             * @enum {unknown}
             */
            type: "semantic" | "episodic" | "procedural" | "emotional";
            /** @description The text to keep, verbatim. A procedure may be a state machine as a JSON string (see types/fsm). */
            content: string;
            /** @description The person the memory is about or came from. */
            user_id?: string;
            /** @description Free-form JSON, kept and shown back as written. At most 100 levels deep. tags, title, project, session_id, speaker, event_time, importance and entity_name here become fields of the record. */
            metadata?: {
                [key: string]: unknown;
            };
            /**
             * @description How sure the writer is, from 0 to 1.
             * @default 1
             */
            confidence?: number;
            /** @description Where the content came from: a URL, a file, a conversation. */
            source?: string;
            /** @description When the memory stops being visible; must lie in the future at the time of writing. Milliseconds since the Unix epoch. */
            expires_at?: number;
            /**
             * @description Stage the memory until a person approves it.
             * @default false
             */
            approval_required?: boolean;
            /** @description How long the memory may be kept, who may see it, and the consent it rests on. */
            privacy_intent?: {
                /** @description Days after which the memory is erased. */
                retain?: number;
                /** @description Agents that may see it; "*" means any. */
                share_with?: string[];
                /** @description Reference to the consent under which it was recorded. */
                user_consent_id?: string;
            };
            /** @description The same key with the same body gives the first answer again; with another body it is a conflict. */
            idempotency_key?: string;
            /** @description A vector computed by the caller with the store's own embedder; absent means the store computes it. */
            embedding?: number[];
            /** @description Why the caller wants this; shown to the reviewer when the request waits for approval. */
            reasoning?: string;
        };
        /**
         * memorywire remember response
         * @description What became of a remember request. An optional field is left out, never null; only approval_url may be null.
         */
        RememberResponse: {
            /** @description The memory's id, the same in every store. */
            id: string;
            /** @description When it was written. Milliseconds since the Unix epoch. */
            stored_at: number;
            /** @description The stores that hold it; empty while it waits for approval. */
            stores: string[];
            /** @description Whether it waits for approval; until then it cannot be recalled. */
            pending_approval: boolean;
            /** @description Where a person can review it; null or absent when nothing waits for approval. */
            approval_url?: string | null;
            /** @description The review that it waits for; absent when nothing waits for approval. */
            review_id?: string;
            /** @description The stores that failed, with the reason; absent when all answered. */
            errors?: {
                /** @description The store's name. */
                store: string;
                /** @description What went wrong. */
                error: string;
            }[];
            /** @description What kinds of secrets were replaced by markers before it was kept; absent when there were none. */
            redacted?: string[];
        };
        /**
         * memorywire review
         * @description A request that waits for a person, or waited. An optional field is left out, never null.
         */
        Review: {
            /** @description The review's id. */
            id: string;
            /**
             * @description The operation that waits.
             * @enum {unknown}
             */
            operation: "remember" | "update" | "forget" | "merge" | "statement" | "attestation";
            /** @description The agent whose memory this is; nothing is read or written across agents. */
            agent_id: string;
            /** @description When it was asked for. Milliseconds since the Unix epoch. */
            created_at: number;
            /**
             * @description Whether it waits or how it was decided.
             * @enum {unknown}
             */
            status: "pending" | "approved" | "rejected" | "expired";
            /** @description Who asked. */
            requested_by: string;
            /** @description The request as it was made, or as the reviewer changed it. At most 100 levels deep. */
            request?: {
                [key: string]: unknown;
            };
            /** @description What the memory would gain, lose and change if it went through. */
            diff?: components["schemas"]["GovernanceReviewRequestDiff"];
            /** @description Why the caller wants it. */
            reasoning?: string;
            /** @description The memories nearest to what is proposed, the most similar first, beside those of the diff. */
            nearest?: {
                /** @description The memory's id. */
                id: string;
                /** @description How alike they are, from 0 to 1. */
                similarity: number;
                /**
                 * @description How the proposal stands to it: it names it as superseded, says the same, says most of the same but for a negation or a number, or is merely similar.
                 * @enum {unknown}
                 */
                relation: "supersedes" | "duplicate" | "contradicts" | "similar";
                /**
                 * @description Its type; where one review is asked for.
                 * @enum {unknown}
                 */
                type?: "semantic" | "episodic" | "procedural" | "emotional";
                /** @description What it says now; where one review is asked for. */
                content?: string;
            }[];
            /** @description The version of each memory, by its id, that the diff was made from, and for a new memory of each that is nearest to it; approving means these. */
            versions?: {
                [key: string]: unknown;
            };
            /** @description Grows with every edit and every fresh diff; give it with a decision to be told when you looked at an older one. */
            revision?: number;
            /** @description Who changed the request while it waited. */
            edited_by?: string[];
            /** @description The id a new memory will have. */
            memory_id?: string;
            /** @description What was decided. */
            decision?: components["schemas"]["GovernanceDecisionRequest"];
            /** @description Whether what it quoted has been erased. */
            erased?: boolean;
            /** @description What came of an approval. */
            outcome?: {
                /** @description The memory or statement that was written. */
                id?: string;
                /** @description The stores that keep it. */
                stores?: string[];
                /** @description The memories that are gone. */
                forgotten_ids?: string[];
                /** @description What an erasure touched or could not reach beyond the ids asked for. */
                erased?: {
                    /**
                     * @description What the erased memories were merged into and still holds their content; with cascade it is erased too.
                     * @default []
                     */
                    descendants?: string[];
                    /** @description What was merged into the erased memories and is still there, readable at an earlier instant; with cascade it is erased too. */
                    sources?: string[];
                    /**
                     * @description Backups made by the user that still hold the content. Only the operator (an admin of the tenant local who may use every agent) is told where they lie.
                     * @default []
                     */
                    backups?: string[];
                    /** @description How many backups still hold the content. */
                    backup_count?: number;
                };
                /** @description What went wrong after it was done, such as a copy that could not be removed. */
                error?: string;
                /** @description The memory that others were merged into. */
                canonical?: string;
                /** @description How many were merged into it. */
                merged_count?: number;
            };
            /** @description The policy rule that asks for the review. */
            rule?: string;
            /** @description The protocol it came by. */
            dialect?: string;
        };
        /**
         * memorywire review edit request
         * @description Ask for something else instead; it goes on waiting. An optional field is left out, never null.
         */
        ReviewEditRequest: {
            /** @description The request as it should have been, following the schema of its operation. At most 100 levels deep. */
            request: {
                [key: string]: unknown;
            };
            /** @description The revision of the review that was looked at; another one is a conflict that carries the fresh review. */
            revision?: number;
        };
        /**
         * memorywire reviews response
         * @description The reviews, oldest first.
         */
        ReviewsResponse: {
            /** @description The reviews. */
            reviews: components["schemas"]["Review"][];
        };
        /**
         * memorywire JSON-RPC request
         * @description One call; a list of them is a batch.
         */
        Rpc: {
            /**
             * @description The version of JSON-RPC.
             * @constant
             */
            jsonrpc: "2.0";
            /** @description Chosen by the caller; absent in a notification. */
            id?: string | number | null;
            /** @description memory.remember, memory.recall and so on. */
            method: string;
            /** @description The operation's request. At most 100 levels deep. */
            params?: {
                [key: string]: unknown;
            };
        };
        /**
         * memorywire JSON-RPC response
         * @description The answer to one call: result or error.
         */
        RpcResponse: {
            /**
             * @description The version of JSON-RPC.
             * @constant
             */
            jsonrpc: "2.0";
            /** @description The id of the call; null when it could not be read. */
            id?: string | number | null;
            /** @description The operation's response. At most 100 levels deep. */
            result?: {
                [key: string]: unknown;
            };
            /** @description The fault. */
            error?: {
                /** @description JSON-RPC's number for it. */
                code: number;
                /** @description One sentence for a person. */
                message: string;
                /** @description code is the fault's code; details has facts a program can use. At most 100 levels deep. */
                data?: {
                    [key: string]: unknown;
                };
            };
        };
        /**
         * memorywire status response
         * @description What the caller may see of the store. An optional field is left out, never null.
         */
        StatusResponse: {
            /** @description The server's version. */
            version: string;
            /** @description How many live memories each agent has. At most 100 levels deep. */
            agents: {
                [key: string]: unknown;
            };
            /** @description All of them together. */
            memories: number;
            /** @description How many requests wait for a person. */
            pending_reviews: number;
            /** @description The embedder of this store. */
            embedder?: {
                /** @description Its name. */
                name: string;
                /** @description Numbers in a vector. */
                dimension: number;
            };
            /** @description What to know about it. */
            note?: string;
            /** @description What is wrong with the webhook; told to reviewers, and absent where there is none. */
            webhook?: {
                /** @description Why its last message was not taken. */
                error?: string;
                /** @description How often it was tried. */
                attempts?: number;
                /** @description Since when. Milliseconds since the Unix epoch. */
                failing_since?: number;
            };
            /** @description How each store is, where there are several. */
            stores?: {
                [key: string]: unknown;
            }[];
            /** @description Left out when all is well. Recalls whose entries could not be written to the ledger yet; they are tried again. */
            unwritten_recalls?: {
                /** @description How many of this tenant's wait. */
                waiting: number;
                /** @description Why. */
                error: string;
                /** @description Milliseconds since the Unix epoch. */
                failing_since: number;
                /** @description How often it was tried. */
                attempts: number;
            };
            /** @description Left out when all is well. Why the ledger could not be exported the last time. */
            audit_export?: {
                /** @description Why. */
                error: string;
                /** @description When. Milliseconds since the Unix epoch. */
                at: number;
            };
        };
        /**
         * memorywire stores
         * @description The stores memories lie in. An optional field is left out, never null.
         */
        StoresResponse: {
            /** @description The primary, then those that have copies, in the order they were configured. */
            stores: {
                /** @description Its name, as answers have it. */
                name: string;
                /**
                 * @description Whether it is authoritative or has copies.
                 * @enum {unknown}
                 */
                role: "primary" | "replica";
                /**
                 * @description How it is; starting is not open yet.
                 * @enum {unknown}
                 */
                status: "ok" | "degraded" | "down" | "starting";
                /** @description Why it failed last; absent when it works. */
                error?: string;
                /** @description How many changes it has not confirmed yet. */
                waiting: number;
                /** @description How many of these were tried and failed. */
                failing: number;
                /** @description How long the oldest of them has waited. */
                behind_ms?: number;
                /** @description Why the last of them failed. */
                last_error?: string;
                /** @description Hits with another text than the primary's, since the process began. */
                altered?: number;
                /** @description Seconds that one operation may take. */
                timeout?: number;
                /** @description Of its scores, where fusion is weighted. */
                weight?: number;
                /** @description Its address without secrets, for an operator. */
                url?: string;
                /** @description What it can do. */
                capabilities: string[];
            }[];
        };
        /**
         * memorywire triple
         * @description One statement of the temporal knowledge graph: it holds from valid_from until before valid_to.
         */
        Triple: {
            /** @description Of this statement; each version has its own. */
            id: string;
            /** @description The agent whose knowledge this is; nothing is read or written across agents. */
            agent_id: string;
            /** @description What it is about. */
            subject: string;
            /** @description What is said of it. */
            predicate: string;
            /** @description The value, or the other thing. */
            object: string;
            /** @description When it began to hold. Milliseconds since the Unix epoch. */
            valid_from: number;
            /** @description When it ceased to hold, or will: the first instant at which it does not; null when no end is known. Milliseconds since the Unix epoch. */
            valid_to?: number | null;
            /** @description How sure it is, from 0 to 1. */
            confidence: number;
            /** @description Where it comes from, as its author put it. */
            provenance?: string;
            /** @description Who stated it. */
            asserted_by: string;
        };
        /**
         * memorywire undo request
         * @description Take back what was done to memories, short of erasing them: forgetting, archiving, demoting, merging, promoting. One of ids, run_id and recovery_id is given. An optional field is left out, never null.
         */
        UndoRequest: {
            /** @description The memories, by id. */
            ids?: string[];
            /** @description A run of a job: everything that it did. */
            run_id?: string;
            /** @description A recovery, as recover answered it: everything that it put back. Needs the role admin. */
            recovery_id?: string;
            /** @description Only memories of this agent; without it, of every agent the caller may use. */
            agent_id?: string;
            /** @description Why, for the audit log. */
            reason?: string;
        };
        /**
         * memorywire undo response
         * @description What is as it was before.
         */
        UndoResponse: {
            /** @description What was brought back; with the source of a promotion, all of its sources. */
            restored_ids: string[];
            /** @description What was there, at full rank, already. */
            unchanged_ids: string[];
            /** @description What could not be brought back. */
            errors?: {
                /** @description The id that was given, or that the run names. */
                id: string;
                /** @description The code of the error. */
                code: string;
                /** @description Why, in a sentence. */
                message: string;
            }[];
            /** @description The stores beside the primary that have not done it yet, with the reason; absent when all have. */
            stores?: {
                /** @description The store's name. */
                store: string;
                /** @description What went wrong. */
                error: string;
            }[];
        };
        /**
         * memorywire update request
         * @description Change a memory in place; what is absent stays as it is, and the version before is kept. An optional field is left out; null is said of expires_at alone.
         */
        UpdateRequest: {
            /** @description The agent whose memory this is; nothing is read or written across agents. */
            agent_id: string;
            /** @description The new content. */
            content?: string;
            /** @description The new metadata, replacing all of the old. Free-form JSON, kept and shown back as written. At most 100 levels deep. */
            metadata?: {
                [key: string]: unknown;
            };
            /** @description The new tags, replacing the old. */
            tags?: string[];
            /** @description The new confidence, from 0 to 1. */
            confidence?: number;
            /** @description The new expiry; must lie in the future. Milliseconds since the Unix epoch; null takes the expiry away. */
            expires_at?: number | null;
            /** @description Who may see it from now on; how long it may be kept stays as it was promised. */
            privacy_intent?: {
                /** @description Agents that may see it, replacing all of the old; "*" means any, none means nobody. */
                share_with: string[];
            };
            /** @description Refuse with a conflict unless the memory is at this version. */
            expected_version?: number;
            /**
             * @description Do nothing until a person approves it.
             * @default false
             */
            approval_required?: boolean;
            /** @description Why the caller wants this; shown to the reviewer when the request waits for approval. */
            reasoning?: string;
        };
        /**
         * memorywire update response
         * @description The memory as it is now: changed, or as it was while the change waits for approval. An optional field is left out, never null; only approval_url may be null.
         */
        UpdateResponse: {
            /** @description The memory's id, the same in every store. */
            id: string;
            /** @description The agent whose memory this is; nothing is read or written across agents. */
            agent_id: string;
            /**
             * @description Which of the four kinds of memory this is.
             * @enum {unknown}
             */
            type: "semantic" | "episodic" | "procedural" | "emotional";
            /** @description The content as it was written. */
            content: string;
            /** @description When it was written. Milliseconds since the Unix epoch. */
            created_at: number;
            /** @description When it last changed. Milliseconds since the Unix epoch. */
            updated_at: number;
            /** @description Counts the changes; expected_version of an update refers to it. */
            version: number;
            /**
             * @description Whether it can be recalled (live), waits for approval, was archived, or was deleted.
             * @enum {unknown}
             */
            status: "live" | "pending" | "archived" | "deleted";
            /** @description How sure the writer was, from 0 to 1. */
            confidence: number;
            /** @description Free-form JSON, as written. At most 100 levels deep. */
            metadata: {
                [key: string]: unknown;
            };
            /** @description A salted hash of the content. */
            content_hash?: string;
            /** @description The person it is about or came from. */
            user_id?: string;
            /** @description Where the content came from. */
            source?: string;
            /** @description When it stops being visible. Milliseconds since the Unix epoch. */
            expires_at?: number;
            /** @description The memory it was merged into. */
            merged_into?: string;
            /** @description When a recall last found it. Milliseconds since the Unix epoch. */
            last_recalled_at?: number;
            /** @description How often recalls found it. */
            recalls?: number;
            /** @description Ids that callers chose for it. */
            aliases?: string[];
            /** @description Memories it takes the place of. */
            supersedes?: string[];
            /** @description How long the memory may be kept, who may see it, and the consent it rests on; absent when nothing was said. */
            privacy_intent?: {
                /** @description Days after which the memory is erased. */
                retain?: number;
                /** @description Agents that may see it; "*" means any. */
                share_with?: string[];
                /** @description Reference to the consent under which it was recorded. */
                user_consent_id?: string;
            };
            /** @description Of a memory received from another agent: source, from, witnesses and chain. At most 100 levels deep. */
            provenance?: {
                [key: string]: unknown;
            };
            /** @description What its score is multiplied by. */
            demotion?: number;
            /** @description Whether the request waits for approval. */
            pending_approval?: boolean;
            /** @description Where a person can review it; null or absent when nothing waits for approval. */
            approval_url?: string | null;
            /** @description The review that it waits for; absent when nothing waits for approval. */
            review_id?: string;
            /** @description The stores beside the primary that have not done it yet, with the reason; absent when all have. */
            errors?: {
                /** @description The store's name. */
                store: string;
                /** @description What went wrong. */
                error: string;
            }[];
        };
    };
    responses: {
        /** @description The request is wrong; the message says what is allowed. */
        AmpBadRequest: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["AmpErrorResponse"];
            };
        };
        /** @description The store has moved on. */
        AmpConflict: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["AmpErrorResponse"];
            };
        };
        /** @description The body is too large. */
        AmpContentTooLarge: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["AmpErrorResponse"];
            };
        };
        /** @description The token may not do this. */
        AmpForbidden: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["AmpErrorResponse"];
            };
        };
        /** @description Another method is needed. */
        AmpMethodNotAllowed: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["AmpErrorResponse"];
            };
        };
        /** @description There is no such thing, or it is not the caller's. */
        AmpNotFound: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["AmpErrorResponse"];
            };
        };
        /** @description It holds a secret that must not be kept. */
        AmpSecretLeakage: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["AmpErrorResponse"];
            };
        };
        /** @description Too many requests; Retry-After says when to come again. */
        AmpTooManyRequests: {
            headers: {
                /** @description Seconds after which to come again. */
                "Retry-After"?: string;
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["AmpErrorResponse"];
            };
        };
        /** @description A token is needed, or this one is not good. */
        AmpUnauthorized: {
            headers: {
                /** @description How to say who is calling, and where tokens are made. */
                "WWW-Authenticate"?: string;
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["AmpErrorResponse"];
            };
        };
        /** @description A backend could not do it. */
        AmpUnavailable: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["AmpErrorResponse"];
            };
        };
        /** @description The request is wrong; the message says what is allowed. */
        BadRequest: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorResponse"];
            };
        };
        /** @description The store has moved on. */
        Conflict: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorResponse"];
            };
        };
        /** @description The body is too large. */
        ContentTooLarge: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorResponse"];
            };
        };
        /** @description The token may not do this. */
        Forbidden: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorResponse"];
            };
        };
        /** @description Another method is needed. */
        MethodNotAllowed: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorResponse"];
            };
        };
        /** @description There is no such thing, or it is not the caller's. */
        NotFound: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorResponse"];
            };
        };
        /** @description The request is wrong; the message says what is allowed. */
        OpenwopBadRequest: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["OpenwopErrorResponse"];
            };
        };
        /** @description The store has moved on. */
        OpenwopConflict: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["OpenwopErrorResponse"];
            };
        };
        /** @description The body is too large. */
        OpenwopContentTooLarge: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["OpenwopErrorResponse"];
            };
        };
        /** @description The token may not do this. */
        OpenwopForbidden: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["OpenwopErrorResponse"];
            };
        };
        /** @description Another method is needed. */
        OpenwopMethodNotAllowed: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["OpenwopErrorResponse"];
            };
        };
        /** @description There is no such thing, or it is not the caller's. */
        OpenwopNotFound: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["OpenwopErrorResponse"];
            };
        };
        /** @description It holds a secret that must not be kept. */
        OpenwopSecretLeakage: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["OpenwopErrorResponse"];
            };
        };
        /** @description Too many requests; Retry-After says when to come again. */
        OpenwopTooManyRequests: {
            headers: {
                /** @description Seconds after which to come again. */
                "Retry-After"?: string;
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["OpenwopErrorResponse"];
            };
        };
        /** @description A token is needed, or this one is not good. */
        OpenwopUnauthorized: {
            headers: {
                /** @description How to say who is calling, and where tokens are made. */
                "WWW-Authenticate"?: string;
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["OpenwopErrorResponse"];
            };
        };
        /** @description A backend could not do it. */
        OpenwopUnavailable: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["OpenwopErrorResponse"];
            };
        };
        /** @description The request is wrong; the message says what is allowed. */
        RpcBadRequest: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["RpcResponse"];
            };
        };
        /** @description The store has moved on. */
        RpcConflict: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["RpcResponse"];
            };
        };
        /** @description The body is too large. */
        RpcContentTooLarge: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["RpcResponse"];
            };
        };
        /** @description The token may not do this. */
        RpcForbidden: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["RpcResponse"];
            };
        };
        /** @description Another method is needed. */
        RpcMethodNotAllowed: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["RpcResponse"];
            };
        };
        /** @description There is no such thing, or it is not the caller's. */
        RpcNotFound: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["RpcResponse"];
            };
        };
        /** @description It holds a secret that must not be kept. */
        RpcSecretLeakage: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["RpcResponse"];
            };
        };
        /** @description Too many requests; Retry-After says when to come again. */
        RpcTooManyRequests: {
            headers: {
                /** @description Seconds after which to come again. */
                "Retry-After"?: string;
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["RpcResponse"];
            };
        };
        /** @description A token is needed, or this one is not good. */
        RpcUnauthorized: {
            headers: {
                /** @description How to say who is calling, and where tokens are made. */
                "WWW-Authenticate"?: string;
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["RpcResponse"];
            };
        };
        /** @description A backend could not do it. */
        RpcUnavailable: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["RpcResponse"];
            };
        };
        /** @description It holds a secret that must not be kept. */
        SecretLeakage: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorResponse"];
            };
        };
        /** @description Too many requests; Retry-After says when to come again. */
        TooManyRequests: {
            headers: {
                /** @description Seconds after which to come again. */
                "Retry-After"?: string;
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorResponse"];
            };
        };
        /** @description A token is needed, or this one is not good. */
        Unauthorized: {
            headers: {
                /** @description How to say who is calling, and where tokens are made. */
                "WWW-Authenticate"?: string;
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorResponse"];
            };
        };
        /** @description A backend could not do it. */
        Unavailable: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorResponse"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    remember: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RememberRequest"];
            };
        };
        responses: {
            /** @description Keep a memory. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RememberResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    remember_batch: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RememberBatchRequest"];
            };
        };
        responses: {
            /** @description Keep many, each with its own outcome. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RememberBatchResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    recall: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RecallRequest"];
            };
        };
        responses: {
            /** @description Find memories; one a line when Accept says application/x-ndjson. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RecallResponse"];
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    forget: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ForgetRequest"];
            };
        };
        responses: {
            /** @description Hide memories, or erase them. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ForgetResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    merge: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MergeRequest"];
            };
        };
        responses: {
            /** @description Make one memory of several. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MergeResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    expire: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ExpireRequest"];
            };
        };
        responses: {
            /** @description Forget, archive or demote what a policy says. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExpireResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    undo: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UndoRequest"];
            };
        };
        responses: {
            /** @description Take back what was done to memories, or by a run of a job. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UndoResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    preview_forget: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ForgetRequest"];
            };
        };
        responses: {
            /** @description What the forget would touch; nothing is changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PreviewResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    preview_merge: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MergeRequest"];
            };
        };
        responses: {
            /** @description What the merge would touch; nothing is changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PreviewMergeResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    preview_expire: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ExpireRequest"];
            };
        };
        responses: {
            /** @description What the expire would touch; nothing is changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PreviewResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    list: {
        parameters: {
            query: {
                /** @description The agent whose memory this is; nothing is read or written across agents. */
                agent_id: string;
                /** @description Only memories of this type. */
                type?: "semantic" | "episodic" | "procedural" | "emotional";
                /** @description Only memories that carry this tag. */
                tag?: string;
                /** @description Only memories of this person. */
                user_id?: string;
                /** @description Conditions every memory must meet. Keys name a metadata field (dots reach inside) or a column of the record; a scalar means equality, a list any of them, and an object holds operators: $gt $gte $lt $lte $ne $in $nin $exists $contains. All keys must hold. Written as a JSON object. */
                filter?: string;
                /** @description How many memories at most. */
                limit?: number;
                /** @description Where the last page ended: its next_cursor, as it came. */
                cursor?: string;
                /** @description List what was there at this instant. Milliseconds since the Unix epoch. */
                as_of?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of an agent's memories, newest first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    get: {
        parameters: {
            query: {
                /** @description The agent whose memory this is; nothing is read or written across agents. */
                agent_id: string;
                /** @description Read it as it stood at this instant. Milliseconds since the Unix epoch. */
                as_of?: number;
            };
            header?: never;
            path: {
                /** @description The memory's id, as recall, list or remember gave it. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One memory. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Memory"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    update: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The memory's id, as recall, list or remember gave it. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateRequest"];
            };
        };
        responses: {
            /** @description Change a memory; the version before is kept. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UpdateResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    history: {
        parameters: {
            query: {
                /** @description The agent whose memory this is; nothing is read or written across agents. */
                agent_id: string;
            };
            header?: never;
            path: {
                /** @description The memory's id, as recall, list or remember gave it. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Every version of a memory, oldest first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HistoryResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    procedure_show: {
        parameters: {
            query?: {
                /** @description The agent whose procedure it is; absent means every agent the caller may use. */
                agent_id?: string;
            };
            header?: never;
            path: {
                /** @description The id of the memory that the procedure is. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Where a procedure stands and what can be fired. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProcedureResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    procedure_draw: {
        parameters: {
            query?: {
                /** @description The agent whose procedure it is; absent means every agent the caller may use. */
                agent_id?: string;
                /** @description What to draw it as. */
                format?: "svg" | "mermaid";
            };
            header?: never;
            path: {
                /** @description The id of the memory that the procedure is. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A procedure as SVG or Mermaid. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProcedureDrawResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    procedure_fire: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the memory that the procedure is. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ProcedureFireRequest"];
            };
        };
        responses: {
            /** @description Move a procedure by a trigger. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProcedureResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    procedure_reset: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the memory that the procedure is. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ProcedureResetRequest"];
            };
        };
        responses: {
            /** @description Put a procedure back to where it starts. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProcedureResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    reviews: {
        parameters: {
            query?: {
                /** @description Only those in this state; those that wait when left out. */
                status?: "pending" | "approved" | "rejected" | "expired" | "all";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Requests that wait for a person, or waited. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReviewsResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    decide_many: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DecideManyRequest"];
            };
        };
        responses: {
            /** @description The same decision about many, each with its own outcome. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DecideManyResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    review: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The review's id, as the staged write or the list of reviews gave it. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One review. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Review"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    decide: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The review's id, as the staged write or the list of reviews gave it. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DecideRequest"];
            };
        };
        responses: {
            /** @description Approve, reject, or approve as edited. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DecideResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    edit_review: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The review's id, as the staged write or the list of reviews gave it. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReviewEditRequest"];
            };
        };
        responses: {
            /** @description Ask for something else instead; it goes on waiting. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Review"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    policies: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The rules in force. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PoliciesResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    set_policies: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PoliciesRequest"];
            };
        };
        responses: {
            /** @description Replace the tenant's own rules. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PoliciesResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    try_policies: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PoliciesDryRunRequest"];
            };
        };
        responses: {
            /** @description What rules would have caught. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PoliciesDryRunResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    learned_policies: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What reviewers always approve. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PoliciesLearnedResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    revoke_learned: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the rule, as the list of those that were learned gives it. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Take back what was learned. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PoliciesRevokeResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    audit: {
        parameters: {
            query?: {
                /** @description Only what concerns this agent. */
                agent_id?: string;
                /** @description Only entries of this operation. */
                operation?: string;
                /** @description Only entries from this instant on. Milliseconds since the Unix epoch. */
                since?: number;
                /** @description Only entries up to this instant. Milliseconds since the Unix epoch. */
                until?: number;
                /** @description How many entries at most. */
                limit?: number;
                /** @description Where the last page ended: its next_cursor, as it came. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of the audit trail, oldest first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    verify_audit: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Whether the audit chain is whole. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditVerifyResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    audit_head: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How many entries there are and their Merkle root, signed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditHeadResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    audit_proof: {
        parameters: {
            query: {
                /** @description The number of the entry; the first is 1. */
                entry: number;
                /** @description Of how many entries the tree is; by default all there are. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The proof that an entry is in the tree. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditProofResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    audit_consistency: {
        parameters: {
            query: {
                /** @description The size of the earlier. */
                from: number;
                /** @description The size of the later; by default all entries there are. */
                to?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The proof that a tree is the beginning of a later one. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditConsistencyResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    audit_key: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The public key of what is signed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditKeyResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    recover: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RecoverRequest"];
            };
        };
        responses: {
            /** @description Take back what came from a bad source, and what was made from it. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RecoverResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    health: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Whether the server can work. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HealthResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    status: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What the caller may see of the store. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StatusResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    stores: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The stores, and what waits for each. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoresResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    lifecycle: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The jobs that look after memories, and what they did last. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LifecycleResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    lifecycle_runs: {
        parameters: {
            query?: {
                /** @description Only runs of this job. */
                job?: string;
                /** @description How many at most. */
                limit?: number;
                /** @description Only runs older than the one with this id: the last that was seen. */
                before?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What runs of the jobs did to which memories, and why. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LifecycleRunsResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    lifecycle_show: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run's id, as its start or the list of runs gave it. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One run. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LifecycleShowResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    lifecycle_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The job's name, as GET /v0/lifecycle gives it. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LifecycleRunRequest"];
            };
        };
        responses: {
            /** @description Run one of these jobs now, or say what it would do. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LifecycleRunResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    kg_assert: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["KgAssertRequest"];
            };
        };
        responses: {
            /** @description State something; what held until then ends. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KgAssertResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    kg_query: {
        parameters: {
            query: {
                /** @description The agent whose memory this is; nothing is read or written across agents. */
                agent_id: string;
                /** @description What to ask about. */
                subject: string;
                /** @description Only what is said of it under this predicate. */
                predicate?: string;
                /** @description What held at this instant instead of now. Milliseconds since the Unix epoch. */
                as_of?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What is stated about a subject, now or at an instant. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KgResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    kg_history: {
        parameters: {
            query: {
                /** @description The agent whose knowledge this is; nothing is read or written across agents. */
                agent_id: string;
                /** @description What to ask about. */
                subject: string;
                /** @description Only what is said of it under this predicate. */
                predicate?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Everything ever stated about a subject, oldest first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KgResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    kg_path: {
        parameters: {
            query: {
                /** @description The agent whose knowledge this is; nothing is read or written across agents. */
                agent_id: string;
                /** @description Where to begin. */
                start: string;
                /** @description Where to arrive. */
                end: string;
                /** @description Use what held at this instant instead of now. Milliseconds since the Unix epoch. */
                as_of?: number;
                /** @description How many statements at most. */
                max_hops?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The fewest statements that lead from one thing to another. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KgPathResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    kg_neighbors: {
        parameters: {
            query: {
                /** @description The agent whose knowledge this is; nothing is read or written across agents. */
                agent_id: string;
                /** @description The memory's id, alias or entity name. */
                memory_id: string;
                /** @description How many ties away at most. */
                hops?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The memories tied to one, nearest first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KgNeighborsResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    kg_retract: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["KgRetractRequest"];
            };
        };
        responses: {
            /** @description End what holds of a subject and predicate now. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Triple"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    kg_erase: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["KgEraseRequest"];
            };
        };
        responses: {
            /** @description Erase everything ever stated about a subject. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KgEraseResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    preview_kg_erase: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["KgEraseRequest"];
            };
        };
        responses: {
            /** @description What an erasure would remove; nothing is changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KgResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    rpc: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Rpc"] | components["schemas"]["Rpc"][];
            };
        };
        responses: {
            /** @description The same operations as JSON-RPC 2.0, singly or in a batch. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RpcResponse"] | components["schemas"]["RpcResponse"][];
                };
            };
            /** @description Nothing but notifications. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["RpcBadRequest"];
            401: components["responses"]["RpcUnauthorized"];
            403: components["responses"]["RpcForbidden"];
            404: components["responses"]["RpcNotFound"];
            405: components["responses"]["RpcMethodNotAllowed"];
            409: components["responses"]["RpcConflict"];
            413: components["responses"]["RpcContentTooLarge"];
            422: components["responses"]["RpcSecretLeakage"];
            429: components["responses"]["RpcTooManyRequests"];
            503: components["responses"]["RpcUnavailable"];
        };
    };
    export: {
        parameters: {
            query?: {
                /** @description Only this agent; every agent that the caller may use where none is named. */
                agent_id?: string;
                /** @description Only what concerns this person. */
                user_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What the caller can read, as one file. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    import: {
        parameters: {
            query?: {
                /** @description Only say what would be done. */
                dry_run?: boolean;
                /** @description Take in the rest of a file in which something is broken; otherwise nothing is. */
                skip_broken?: boolean;
                /** @description Also what was erased here since. */
                restore_erased?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/x-ndjson": string;
            };
        };
        responses: {
            /** @description Take in such a file. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImportResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    amp_store: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AmpStoreRequest"];
            };
        };
        responses: {
            /** @description Create a record or replace it. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AmpStoreResponse"];
                };
            };
            400: components["responses"]["AmpBadRequest"];
            401: components["responses"]["AmpUnauthorized"];
            403: components["responses"]["AmpForbidden"];
            404: components["responses"]["AmpNotFound"];
            405: components["responses"]["AmpMethodNotAllowed"];
            409: components["responses"]["AmpConflict"];
            413: components["responses"]["AmpContentTooLarge"];
            422: components["responses"]["AmpSecretLeakage"];
            429: components["responses"]["AmpTooManyRequests"];
            503: components["responses"]["AmpUnavailable"];
        };
    };
    amp_search: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AmpSearchRequest"];
            };
        };
        responses: {
            /** @description Find records by meaning. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AmpSearchResponse"];
                };
            };
            400: components["responses"]["AmpBadRequest"];
            401: components["responses"]["AmpUnauthorized"];
            403: components["responses"]["AmpForbidden"];
            404: components["responses"]["AmpNotFound"];
            405: components["responses"]["AmpMethodNotAllowed"];
            409: components["responses"]["AmpConflict"];
            413: components["responses"]["AmpContentTooLarge"];
            422: components["responses"]["AmpSecretLeakage"];
            429: components["responses"]["AmpTooManyRequests"];
            503: components["responses"]["AmpUnavailable"];
        };
    };
    amp_list: {
        parameters: {
            query?: {
                /** @description Only records of this type. */
                type?: string;
                /** @description Exactly this agent's records; without it, those of every agent you may read. */
                agent?: string;
                /** @description Only records of this project. */
                project?: string;
                /** @description Only records that carry all of these. Comma-separated. */
                tags?: string;
                /** @description How many records at most. */
                limit?: number;
                /** @description How many to pass over first. */
                offset?: number;
                /** @description By created_at: newest first, or oldest first. */
                order?: "desc" | "asc";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List records by time. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AmpListResponse"];
                };
            };
            400: components["responses"]["AmpBadRequest"];
            401: components["responses"]["AmpUnauthorized"];
            403: components["responses"]["AmpForbidden"];
            404: components["responses"]["AmpNotFound"];
            405: components["responses"]["AmpMethodNotAllowed"];
            409: components["responses"]["AmpConflict"];
            413: components["responses"]["AmpContentTooLarge"];
            422: components["responses"]["AmpSecretLeakage"];
            429: components["responses"]["AmpTooManyRequests"];
            503: components["responses"]["AmpUnavailable"];
        };
    };
    amp_get: {
        parameters: {
            query?: {
                /** @description Only if it is this agent's. */
                agent?: string;
            };
            header?: never;
            path: {
                /** @description The record's id, as store, search or list gave it. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Read one record. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AmpGetResponse"];
                };
            };
            400: components["responses"]["AmpBadRequest"];
            401: components["responses"]["AmpUnauthorized"];
            403: components["responses"]["AmpForbidden"];
            404: components["responses"]["AmpNotFound"];
            405: components["responses"]["AmpMethodNotAllowed"];
            409: components["responses"]["AmpConflict"];
            413: components["responses"]["AmpContentTooLarge"];
            422: components["responses"]["AmpSecretLeakage"];
            429: components["responses"]["AmpTooManyRequests"];
            503: components["responses"]["AmpUnavailable"];
        };
    };
    amp_delete: {
        parameters: {
            query?: {
                /** @description Only if it is this agent's. */
                agent?: string;
            };
            header?: never;
            path: {
                /** @description The record's id, as store, search or list gave it. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Remove a record. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AmpDeleteResponse"];
                };
            };
            400: components["responses"]["AmpBadRequest"];
            401: components["responses"]["AmpUnauthorized"];
            403: components["responses"]["AmpForbidden"];
            404: components["responses"]["AmpNotFound"];
            405: components["responses"]["AmpMethodNotAllowed"];
            409: components["responses"]["AmpConflict"];
            413: components["responses"]["AmpContentTooLarge"];
            422: components["responses"]["AmpSecretLeakage"];
            429: components["responses"]["AmpTooManyRequests"];
            503: components["responses"]["AmpUnavailable"];
        };
    };
    amp_status: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Health and statistics. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AmpStatusResponse"];
                };
            };
            400: components["responses"]["AmpBadRequest"];
            401: components["responses"]["AmpUnauthorized"];
            403: components["responses"]["AmpForbidden"];
            404: components["responses"]["AmpNotFound"];
            405: components["responses"]["AmpMethodNotAllowed"];
            409: components["responses"]["AmpConflict"];
            413: components["responses"]["AmpContentTooLarge"];
            422: components["responses"]["AmpSecretLeakage"];
            429: components["responses"]["AmpTooManyRequests"];
            503: components["responses"]["AmpUnavailable"];
        };
    };
    amp_agent_status: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The agent's name. */
                agent: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What an agent is doing. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AmpAgentStatusResponse"];
                };
            };
            400: components["responses"]["AmpBadRequest"];
            401: components["responses"]["AmpUnauthorized"];
            403: components["responses"]["AmpForbidden"];
            404: components["responses"]["AmpNotFound"];
            405: components["responses"]["AmpMethodNotAllowed"];
            409: components["responses"]["AmpConflict"];
            413: components["responses"]["AmpContentTooLarge"];
            422: components["responses"]["AmpSecretLeakage"];
            429: components["responses"]["AmpTooManyRequests"];
            503: components["responses"]["AmpUnavailable"];
        };
    };
    embeddings: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["OpenaiEmbeddings"];
            };
        };
        responses: {
            /** @description Vectors for texts, by the store's embedder. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenaiEmbeddingsResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    openwop_ref: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["OpenwopRefRequest"];
            };
        };
        responses: {
            /** @description Get the memoryRef of an agent. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenwopRefResponse"];
                };
            };
            400: components["responses"]["OpenwopBadRequest"];
            401: components["responses"]["OpenwopUnauthorized"];
            403: components["responses"]["OpenwopForbidden"];
            404: components["responses"]["OpenwopNotFound"];
            405: components["responses"]["OpenwopMethodNotAllowed"];
            409: components["responses"]["OpenwopConflict"];
            413: components["responses"]["OpenwopContentTooLarge"];
            422: components["responses"]["OpenwopSecretLeakage"];
            429: components["responses"]["OpenwopTooManyRequests"];
            503: components["responses"]["OpenwopUnavailable"];
        };
    };
    openwop_run: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["OpenwopRunRequest"];
            };
        };
        responses: {
            /** @description Start a run: it sees what is there now. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenwopRunResponse"];
                };
            };
            400: components["responses"]["OpenwopBadRequest"];
            401: components["responses"]["OpenwopUnauthorized"];
            403: components["responses"]["OpenwopForbidden"];
            404: components["responses"]["OpenwopNotFound"];
            405: components["responses"]["OpenwopMethodNotAllowed"];
            409: components["responses"]["OpenwopConflict"];
            413: components["responses"]["OpenwopContentTooLarge"];
            422: components["responses"]["OpenwopSecretLeakage"];
            429: components["responses"]["OpenwopTooManyRequests"];
            503: components["responses"]["OpenwopUnavailable"];
        };
    };
    openwop_end: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run's id, as its start or the list of runs gave it. */
                runId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description End a run and drop what it noted for itself. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenwopEndResponse"];
                };
            };
            400: components["responses"]["OpenwopBadRequest"];
            401: components["responses"]["OpenwopUnauthorized"];
            403: components["responses"]["OpenwopForbidden"];
            404: components["responses"]["OpenwopNotFound"];
            405: components["responses"]["OpenwopMethodNotAllowed"];
            409: components["responses"]["OpenwopConflict"];
            413: components["responses"]["OpenwopContentTooLarge"];
            422: components["responses"]["OpenwopSecretLeakage"];
            429: components["responses"]["OpenwopTooManyRequests"];
            503: components["responses"]["OpenwopUnavailable"];
        };
    };
    openwop_list: {
        parameters: {
            query?: {
                /** @description The memory that is meant: one issued here (mem_…), or the name of an agent. May be left out where the run was started with one. */
                memoryRef?: string;
                /** @description How many entries at most; 0, none or more than 500 means 500. */
                limit?: number;
                /** @description Only entries that carry this tag. */
                tag?: string;
                /** @description How many tokens all entries together may have, a token being four characters; an entry that exceeds it alone is left out. */
                tokenBudget?: number;
                /** @description Newest first, or most relevant to query first. */
                rank?: "recency" | "relevance";
                /** @description What entries should be relevant to; goes with rank relevance. */
                query?: string;
                /** @description The run to read or write within; what it reads is as it was at its start. */
                runId?: string;
                /** @description Which memory: what lasts (longTerm, also spelled long-term), or what the run notes for itself. */
                backend?: "scratchpad" | "conversation" | "longTerm" | "long-term";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List entries. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenwopListResponse"];
                };
            };
            400: components["responses"]["OpenwopBadRequest"];
            401: components["responses"]["OpenwopUnauthorized"];
            403: components["responses"]["OpenwopForbidden"];
            404: components["responses"]["OpenwopNotFound"];
            405: components["responses"]["OpenwopMethodNotAllowed"];
            409: components["responses"]["OpenwopConflict"];
            413: components["responses"]["OpenwopContentTooLarge"];
            422: components["responses"]["OpenwopSecretLeakage"];
            429: components["responses"]["OpenwopTooManyRequests"];
            503: components["responses"]["OpenwopUnavailable"];
        };
    };
    openwop_put: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["OpenwopPutRequest"];
            };
        };
        responses: {
            /** @description Write an entry. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenwopPutResponse"];
                };
            };
            400: components["responses"]["OpenwopBadRequest"];
            401: components["responses"]["OpenwopUnauthorized"];
            403: components["responses"]["OpenwopForbidden"];
            404: components["responses"]["OpenwopNotFound"];
            405: components["responses"]["OpenwopMethodNotAllowed"];
            409: components["responses"]["OpenwopConflict"];
            413: components["responses"]["OpenwopContentTooLarge"];
            422: components["responses"]["OpenwopSecretLeakage"];
            429: components["responses"]["OpenwopTooManyRequests"];
            503: components["responses"]["OpenwopUnavailable"];
        };
    };
    openwop_get: {
        parameters: {
            query?: {
                /** @description The memory that is meant: one issued here (mem_…), or the name of an agent. May be left out where the run was started with one. */
                memoryRef?: string;
                /** @description The run to read or write within; what it reads is as it was at its start. */
                runId?: string;
                /** @description Which memory: what lasts (longTerm, also spelled long-term), or what the run notes for itself. */
                backend?: "scratchpad" | "conversation" | "longTerm" | "long-term";
            };
            header?: never;
            path: {
                /** @description The entry's id, as the list or the write gave it. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Read one entry. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenwopGetResponse"];
                };
            };
            400: components["responses"]["OpenwopBadRequest"];
            401: components["responses"]["OpenwopUnauthorized"];
            403: components["responses"]["OpenwopForbidden"];
            404: components["responses"]["OpenwopNotFound"];
            405: components["responses"]["OpenwopMethodNotAllowed"];
            409: components["responses"]["OpenwopConflict"];
            413: components["responses"]["OpenwopContentTooLarge"];
            422: components["responses"]["OpenwopSecretLeakage"];
            429: components["responses"]["OpenwopTooManyRequests"];
            503: components["responses"]["OpenwopUnavailable"];
        };
    };
    openwop_delete: {
        parameters: {
            query?: {
                /** @description The memory that is meant: one issued here (mem_…), or the name of an agent. May be left out where the run was started with one. */
                memoryRef?: string;
                /** @description The run to read or write within; what it reads is as it was at its start. */
                runId?: string;
                /** @description Which memory: what lasts (longTerm, also spelled long-term), or what the run notes for itself. */
                backend?: "scratchpad" | "conversation" | "longTerm" | "long-term";
            };
            header?: never;
            path: {
                /** @description The entry's id, as the list or the write gave it. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Delete an entry. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenwopDeleteResponse"];
                };
            };
            400: components["responses"]["OpenwopBadRequest"];
            401: components["responses"]["OpenwopUnauthorized"];
            403: components["responses"]["OpenwopForbidden"];
            404: components["responses"]["OpenwopNotFound"];
            405: components["responses"]["OpenwopMethodNotAllowed"];
            409: components["responses"]["OpenwopConflict"];
            413: components["responses"]["OpenwopContentTooLarge"];
            422: components["responses"]["OpenwopSecretLeakage"];
            429: components["responses"]["OpenwopTooManyRequests"];
            503: components["responses"]["OpenwopUnavailable"];
        };
    };
    openwop_discovery: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What this host offers. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenwopDiscoveryResponse"];
                };
            };
            400: components["responses"]["OpenwopBadRequest"];
            401: components["responses"]["OpenwopUnauthorized"];
            403: components["responses"]["OpenwopForbidden"];
            404: components["responses"]["OpenwopNotFound"];
            405: components["responses"]["OpenwopMethodNotAllowed"];
            409: components["responses"]["OpenwopConflict"];
            413: components["responses"]["OpenwopContentTooLarge"];
            422: components["responses"]["OpenwopSecretLeakage"];
            429: components["responses"]["OpenwopTooManyRequests"];
            503: components["responses"]["OpenwopUnavailable"];
        };
    };
    mrp_request: {
        parameters: {
            query?: {
                /** @description Who answers; otherwise the agent set in [mrp], else the whole server. */
                agent?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MrpRequest"];
            };
        };
        responses: {
            /** @description Ask for memories. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MrpResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    mrp_verify: {
        parameters: {
            query?: {
                /** @description Who answers; otherwise the agent set in [mrp], else the whole server. */
                agent?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MrpVerify"];
            };
        };
        responses: {
            /** @description Check a memory that was answered. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MrpVerifyResult"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    mrp_vouches: {
        parameters: {
            query?: {
                /** @description The agent that is vouched for; otherwise all vouches are listed. */
                subject?: string;
                /** @description How many at most [1000]. */
                limit?: number;
                /** @description The next_cursor of the answer before this one. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Who vouches for whom. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MrpVouchesResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
    mrp_vouch: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MrpVouch"];
            };
        };
        responses: {
            /** @description Vouch for an agent. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MrpVouchResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            422: components["responses"]["SecretLeakage"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["Unavailable"];
        };
    };
}
