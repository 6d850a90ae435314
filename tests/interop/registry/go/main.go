// Go's clients of registries against one: URL. Confluent's and franz-go's, each says what it was told.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"

	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry"
	"github.com/twmb/franz-go/pkg/sr"
)

const (
	first  = `{"type":"record","name":"R","fields":[{"name":"a","type":"long"}]}`
	second = `{"type":"record","name":"R","fields":[{"name":"a","type":"long"},{"name":"b","type":"string","default":"x"}]}`
	other  = `"string"`
)

func say(who, what string, answer any, err error) {
	if err != nil {
		fmt.Printf("%s %s: %s\n", who, what, problem(err))
		return
	}
	fmt.Printf("%s %s: %v\n", who, what, answer)
}

func problem(err error) string {
	var ofSr *sr.ResponseError
	if errors.As(err, &ofSr) {
		return fmt.Sprintf("error %d", ofSr.ErrorCode)
	}
	// Confluent's error is in a package of its own that has no name outside; its member has.
	value := reflect.ValueOf(err)
	for value.Kind() == reflect.Pointer {
		value = value.Elem()
	}
	if value.Kind() == reflect.Struct && value.FieldByName("Code").IsValid() {
		return fmt.Sprintf("error %v", value.FieldByName("Code").Int())
	}
	return "failed " + err.Error()
}

func confluent(url string) error {
	client, err := schemaregistry.NewClient(schemaregistry.NewConfig(url))
	if err != nil {
		return err
	}
	id, err := client.Register("go", schemaregistry.SchemaInfo{Schema: first}, false)
	say("confluent", "first id", id, err)
	full, err := client.RegisterFullResponse("go", schemaregistry.SchemaInfo{Schema: second}, true)
	say("confluent", "second", full.Version, err)
	found, err := client.GetBySubjectAndID("go", id)
	say("confluent", "by id", found.Schema == first, err)
	versions, err := client.GetAllVersions("go")
	say("confluent", "versions", versions, err)
	latest, err := client.GetLatestSchemaMetadata("go")
	say("confluent", "latest", latest.ID == full.ID && latest.Version == 2, err)
	fits, err := client.TestSubjectCompatibility("go", schemaregistry.SchemaInfo{Schema: other})
	say("confluent", "fits", fits, err)
	_, err = client.Register("go", schemaregistry.SchemaInfo{Schema: other}, false)
	say("confluent", "refused", nil, err)
	config, err := client.UpdateConfig("go", schemaregistry.ServerConfig{CompatibilityUpdate: schemaregistry.Full})
	say("confluent", "config", config.CompatibilityUpdate.String(), err)
	_, err = client.Register("go-ref", schemaregistry.SchemaInfo{
		Schema:     `{"type":"record","name":"Q","fields":[{"name":"r","type":"R"}]}`,
		References: []schemaregistry.Reference{{Name: "R", Subject: "go", Version: 1}},
	}, false)
	say("confluent", "reference", "registered", err)
	_, err = client.DeleteSubjectVersion("go", 1, false)
	say("confluent", "referred to", nil, err)
	_, err = client.GetSchemaMetadata("go", 9)
	say("confluent", "missing", nil, err)
	deleted, err := client.DeleteSubject("go-ref", false)
	say("confluent", "deleted", deleted, err)
	deleted, err = client.DeleteSubject("go-ref", true)
	say("confluent", "gone", deleted, err)
	subjects, err := client.GetAllSubjects()
	say("confluent", "subjects", len(subjects) >= 1, err)
	return nil
}

func franz(url string) error {
	context := context.Background()
	client, err := sr.NewClient(sr.URLs(url))
	if err != nil {
		return err
	}
	made, err := client.CreateSchema(context, "go-franz", sr.Schema{Schema: first})
	say("franz", "version", made.Version, err)
	text, err := client.SchemaTextByID(context, made.ID)
	say("franz", "text", text == first, err)
	verdict, err := client.CheckCompatibility(sr.WithParams(context, sr.Verbose), "go-franz", 1, sr.Schema{Schema: other})
	say("franz", "fits", verdict.Is, err)
	say("franz", "why", len(verdict.Messages) > 0, nil)
	_, err = client.CreateSchema(context, "go-franz", sr.Schema{Schema: other})
	say("franz", "refused", nil, err)
	_, err = client.CreateSchema(context, "go-proto", sr.Schema{Schema: "syntax = \"proto3\";\nmessage A { int32 x = 1; }\n", Type: sr.TypeProtobuf})
	say("franz", "protobuf", "registered", err)
	_, err = client.CreateSchema(context, "go-json", sr.Schema{Schema: `{"type":"object"}`, Type: sr.TypeJSON})
	say("franz", "json", "registered", err)
	types, err := client.SupportedTypes(context)
	say("franz", "types", types, err)
	for _, result := range client.SetMode(context, sr.ModeReadOnly, "go-franz") {
		say("franz", "mode", result.Mode, result.Err)
	}
	_, err = client.CreateSchema(context, "go-franz", sr.Schema{Schema: second})
	say("franz", "read only", nil, err)
	usages, err := client.SchemaUsagesByID(context, made.ID)
	say("franz", "usages", len(usages) >= 1, err)
	return nil
}

func main() {
	for _, run := range []func(string) error{confluent, franz} {
		if err := run(os.Args[1]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}
