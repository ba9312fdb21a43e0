package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

var (
	rdf4jServer = "org.eclipse.rdf4j:rdf4j-http-server:5.0.3:war"
	jetty       = "org.eclipse.jetty:jetty-runner:9.4.56.v20240826"
)

// rdf4j starts an Eclipse RDF4J Server in Jetty, with one native repository.
func (k *kit) rdf4j(ctx context.Context) {
	war, err := k.maven(ctx, rdf4jServer)
	if err != nil {
		k.lack("RDF4J", javaHow, err)
		return
	}
	runner, err := k.maven(ctx, jetty)
	if err != nil {
		k.lack("RDF4J", javaHow, err)
		return
	}
	port := freePort()
	base := "http://127.0.0.1:" + port + "/rdf4j-server"
	err = k.start(ctx, "rdf4j", base+"/protocol", nil, "java", "-Xmx2g", "-Dorg.eclipse.rdf4j.appdata.basedir="+filepath.Join(k.work, "rdf4j"),
		"-jar", runner, "--host", "127.0.0.1", "--port", port, "--path", "/rdf4j-server", war)
	if err == nil {
		err = teststores.NewRepository(ctx, base+"/repositories/tests")
	}
	if err != nil {
		k.lack("RDF4J", javaHow, err)
		return
	}
	k.env = append(k.env, teststores.EnvRDF4J+"="+base+"/repositories/tests")
}

const javaHow = "install Java 17 or later and Maven, and let it reach its repository"

// maven has the file of an artifact (group:name:version, and :packaging where it
// is no jar) in the cache.
func (k *kit) maven(ctx context.Context, artifact string) (file string, err error) {
	parts := append(strings.Split(artifact, ":"), "jar")
	file = filepath.Join(k.cache, parts[1]+"-"+parts[2]+"."+parts[3])
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	fmt.Println("fetching", artifact)
	const plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:"
	tmp := filepath.Join(k.cache, "maven")
	if err := do(ctx, "mvn", "-B", "-q", plugin+"get", "-Dtransitive=false", "-Dartifact="+artifact); err != nil {
		return "", err
	}
	if err := do(ctx, "mvn", "-B", "-q", plugin+"copy", "-Dartifact="+artifact, "-DoutputDirectory="+tmp); err != nil {
		return "", err
	}
	return file, os.Rename(filepath.Join(tmp, filepath.Base(file)), file)
}
